"""The tracer function_graph, which records calls and returns of the kernel's functions."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stretto.probes.tracefs import Folder, Instance
    from stretto.protos.config import FtraceConfig

TRACER = "function_graph"
FILTER = "set_ftrace_filter"
ROOTS = "set_graph_function"
DEPTH = "max_graph_depth"
MISSING = "this kernel has no function_graph tracer (CONFIG_FUNCTION_GRAPH_TRACER)"


def needs_top_folder(options: FtraceConfig, top: Folder) -> bool:
    """Whether the config restricts calls in a way that instances don't have."""
    wanted = options.function_graph_roots or options.function_graph_max_depth
    return options.enable_function_graph and bool(wanted) and is_known(top)


def is_known(folder: Folder) -> bool:
    """Whether a folder can have the tracer: Linux has it in instances since 6.11."""
    return TRACER in folder.read("available_tracers").split()


def switch_on(instance: Instance, options: FtraceConfig) -> str | None:
    """Begin to record calls as the config asks; return why not, or None.

    A filter that the kernel refuses leaves the tracer off: it would record all functions.
    """
    if not is_known(instance):
        return MISSING
    if options.function_graph_max_depth and not instance.change(
        DEPTH, str(options.function_graph_max_depth)
    ):
        return f"the kernel refuses the depth {options.function_graph_max_depth}"
    for name, functions in (
        (FILTER, options.function_filters),
        (ROOTS, options.function_graph_roots),
    ):
        for index, function in enumerate(functions):
            if not _add(instance, name, function, first=index == 0):
                return f"the kernel has no function {function!r} that can be traced ({name})"
    return None if instance.change("current_tracer", TRACER) else "another tracer is in use"


def _add(instance: Instance, name: str, function: str, *, first: bool) -> bool:
    """Add a function, or a pattern of functions, to a file; the first one replaces the contents."""
    if ":" in function or not function.strip():
        return False  # `function:command` would do something else.
    return instance.change(name, function) if first else instance.append(name, function)
