"""Hooks into the interpreter (native/hooks): function tracing, and functions with observers."""

from collections.abc import Callable, Iterable
from types import CodeType
from typing import Any, Final, final

from stretto._native import Category, EventTemplate, Flow, Track

DEFAULT_MAX_DEPTH: Final = 400
MAX_CODE_RECORDS: Final = 65536

def start(
    category: Category,
    *,
    accepts: Callable[[CodeType, str | None], object] | None = None,
    min_duration_ns: int = 0,
    max_depth: int = ...,
    c_functions: bool = False,
    auto_detail: bool = False,
    threshold_file: str | None = None,
    arguments_of: Callable[[CodeType, tuple[object, ...]], dict[str, Any]] | None = None,
    result_of: Callable[[CodeType, object], dict[str, Any]] | None = None,
    cpu: bool = False,
) -> bool:
    """Record every call as a slice of the category, on the calling thread's track.

    All threads are traced, existing and future ones.

    Args:
        accepts: called once for each code object, with the name of the module whose code runs;
            returns whether to trace it, or a str: the name of its slices instead of the qualified
            name. With `...` only the C functions that it calls have slices, if auto detail is on.
            An exception counts as True. None traces everything.
        min_duration_ns: shorter calls are not recorded.
        max_depth: deeper calls are only counted.
        c_functions: whether to record functions and methods written in C, too, if they are called
            from accepted code.
        auto_detail: whether calls shorter than a threshold are only counted, in their caller. The
            hooks of functions with short calls are switched off, and a native thread samples the
            stacks.
        threshold_file: a file that holds the threshold as a u64 in nanoseconds, which may rise
            during the recording; None: the threshold is 50 us.
        arguments_of: returns the arguments of the slice of a call, from the call's arguments.
        result_of: returns the arguments of the end of the slice, from the call's result.
        cpu: whether each slice has the CPU time of its thread.

    Returns:
        False in a sub-interpreter, where nothing happens.

    Raises:
        TypeError: an argument is of the wrong type.
        ValueError: `max_depth` is out of range.
        RuntimeError: calls are recorded already, or other tools hold the interpreter's hooks.
    """

def stop() -> None:
    """Stop recording calls. Slices that are open now stay open."""

def suspend() -> None:
    """End all slices of auto detail, and record nothing until `resume` is called.

    No effect if auto detail is off.
    """

def resume() -> None:
    """Record again after `suspend`, with the same counts. No effect if `stop` was called."""

def follow_greenlets(greenlet: object, /) -> None:
    """Follow the switches of threads between greenlets from now on.

    Args:
        greenlet: the module, which is not used.
    """

def follows_greenlets() -> bool:
    """Whether calls are recorded now, and switches between greenlets followed."""

def running() -> bool:
    """Whether calls are recorded now."""

def stats() -> dict[str, int]:
    """Return the numbers of calls that were not recorded since the last start, by reason.

    `too_deep`, `too_short`: calls beyond the limits. `unfinished`: calls whose end was not
    reported, so that they end with their caller. `threads_replaced`, `threads_occupied`: threads
    that could not be traced because the program set its own profiler: during the recording
    (`threads_replaced`), or before it (`threads_occupied`). `not_continued`: calls on the stacks of
    greenlets that have no slice after a switch back, because too many were suspended.
    `without_record`: how often auto detail had no record for a code object, because there are
    already MAX_CODE_RECORDS.
    """

def totals() -> dict[str, Any]:
    """Return what auto detail has counted since its start.

    `functions` is a list of (name, file, line, calls, ns in these calls, own ns, ns on a stack).
    `own ns` and `ns on a stack` are estimated from samples of the stacks. `calls` is None for a
    function whose hooks were switched off. The other members of the result are numbers:
    `running_ns` and `waiting_ns` are sums over all threads; `shown` is the number of slices,
    `found` the number of slices found by sampling, `counted` the number of calls without a slice.
    `period_ns` is the mean time between two rounds of samples, weighted by this time;
    `longest_gap_ns` is the longest.
    """

def share_totals() -> int:
    """Put the totals of auto detail into memory, where they outlive this process.

    Returns:
        The descriptor of the memory, owned by the caller; -1 if the system has no such memory, or
        the totals are shared already. `recorder.host.totals` reads the memory.
    """

def publish_totals() -> None:
    """Bring the shared totals up to date, at the end of the process.

    Also write an instant with the mean and the longest time between two samples of the stacks, if
    a function was switched off.
    """

def looks() -> list[tuple[int, int]]:
    """Return the begin and end, in ns, of the last looks: at most 1,023, the oldest first.

    A look reads the stacks of threads once. A round of samples is one look at all threads. If it
    finds new calls, a second look at the threads of these calls follows.
    """

def pause_sampling() -> None:
    """Stop the thread of auto detail, which reads the stacks. Call it before a fork."""

def resume_sampling() -> None:
    """Start the thread of auto detail again after a fork. No effect if auto detail is off."""

def begin_sampling() -> None:
    """Start the sampling in the child of a fork, unless its first call does."""

def begin_in_child() -> None:
    """Drop the open calls of the parent, in the child of a fork.

    With auto detail, the next call of a function connects the child to the recorder, and starts
    the sampling thread.
    """

def silence() -> None:
    """Make the interpreter report no more calls. After this, only `stop` may be called."""

def start_io_waits(
    describe: Callable[[object], tuple[str | None, str | None]], min_ns: int, /
) -> bool:
    """Record waits in C functions as slices of templates with the values file and peer.

    Args:
        describe: Returns the file or the peer that a function has waited for, from its object or
            first argument.
        min_ns: The least duration of a wait.

    Returns:
        Whether that is possible: not in free-threaded builds, nor in other interpreters than the
        main one, nor if they are recorded already.
    """

def observe_io_waits(function: object, template: EventTemplate, subject: int, /) -> bool:
    """Record waits in a C function or method, between `start_io_waits` and `stop_io_waits`.

    Args:
        function: A function, or a method of a type.
        template: The template of its slices.
        subject: What `describe` gets: 0 nothing, it isn't called; 1 the object; 2 the first
            argument.

    Returns:
        Whether that is possible: the interpreter calls it in a known way.
    """

def stop_io_waits() -> None:
    """Stop recording waits in C functions."""

def start_lock_waits(
    for_lock: EventTemplate, for_notification: EventTemplate, hidden: str, /
) -> bool:
    """Record waits for locks as slices of two templates.

    Args:
        for_lock: The template of the slices, with the values made_at, held_by_tid and timed_out.
        for_notification: That of waits for a notification.
        hidden: A folder; waits of code in its files are left out.

    Returns:
        Whether that is possible: not in free-threaded builds, nor in other interpreters than the
        main one, nor if they are recorded already.
    """

def stop_lock_waits() -> None:
    """Stop recording waits for locks."""

def take_short_lock_waits() -> tuple[int, int]:
    """Return the waits that were too short for a slice since the last call.

    Returns:
        Their number, and their total time in nanoseconds.
    """

def start_gil_waits(
    take: EventTemplate, hand_over: EventTemplate, make_track: Callable[[Track], Track], /
) -> str | None:
    """Record waits for the GIL, and for its hand-overs, as slices.

    Args:
        take: The template of waits for the GIL, with the value held_by_tid.
        hand_over: That of waits until another thread has taken the GIL, with taken_by_tid.
        make_track: Returns the track of a thread's waits, below the thread's track.

    Returns:
        None; or why that is impossible.
    """

def stop_gil_waits() -> None:
    """Stop recording waits for the GIL."""

def write_gil_waits() -> tuple[int, int, int]:
    """Write the waits that have ended.

    Returns:
        Since the last call: the number of waits that were too short for a slice, their total time
        in nanoseconds, and the number of waits that were lost.
    """

def gil_waits_problem() -> str | None:
    """Return why waits for the GIL can't be recorded; None if they can."""

def pause_gil_waits() -> None:
    """Stop the thread that writes the waits, before a fork."""

def resume_gil_waits() -> None:
    """Start the thread again, if waits are recorded."""

def watch_loops(
    limit_ns: int,
    on_loop: Callable[[int], object],
    on_blocked: Callable[[int, int, Any], object],
    on_end: Callable[[int, int, int, Any, bool], object],
    on_lag: Callable[[int, int], object],
    /,
) -> None:
    """Report the lag of event loops, and callbacks that block them.

    Args:
        limit_ns: A callback that takes as long blocks its loop.
        on_loop: Called with the `get_ident()` of each thread that runs a loop, on this thread.
        on_blocked: Called with a thread, the begin of its callback and the callback's handle, on
            another thread, while the callback runs.
        on_end: Called with the thread, the begin, the end and the handle of such a callback, and
            whether `on_blocked` was called for it; on the loop's thread, or on that of `on_blocked`
            if the callback ended during this call.
        on_lag: Called on the loop's thread with the begin and the end of the time in which it was
            busy, for the longest one in 50 ms, and for each of 10 ms or more.
    """

def unwatch_loops() -> None:
    """Stop these reports, except the ends of callbacks that `on_blocked` has reported."""

def pause_loop_watch() -> None:
    """Stop the thread that looks at the loops, before a fork."""

def resume_loop_watch() -> None:
    """Start the thread again, if loops are watched."""

def loop_iteration_begins(*args: Any, **kwargs: Any) -> bool | None:
    """Observe the begin of an iteration of an event loop."""

def loop_iteration_ended(token: object, result: object, /) -> None:
    """Observe its end."""

def loop_callback_begins(*args: Any, **kwargs: Any) -> bool | None:
    """Observe the begin of a callback of an event loop; the first argument is its handle."""

def loop_callback_ended(token: object, result: object, /) -> None:
    """Observe its end."""

def gc_callback(
    category: Category, thread_track: Callable[[], Track], /
) -> Callable[[str, dict[str, int]], None]:
    """Return a callable for `gc.callbacks`: each garbage collection becomes a slice."""

def watch_tasks(
    look: Callable[[Any, Any, int, int, int, int, bool], object] | None,
    end: Callable[[Any, Any, int, int, int], object] | None,
    failed: Callable[[Any], object] | None,
    find: Callable[[], Iterable[Any]] | None,
    every: bool,
    /,
) -> None:
    """Watch tasks of asyncio and trio from now on. If `look` is None, stop watching.

    Args:
        look: called with the lane of a task (None at first), the task, and the times of its
            creation, of the last look, of the end of its last step (0: none yet), and now, and
            whether a step begins now; returns the lane. Called before a step, after a wait as long
            as auto detail's threshold, and by look_at_tasks().
        end: called when a task is done, with its lane, the task, and the times of its creation, of
            the last look, and now.
        failed: called with the exception that has ended a task, of whatever age.
        find: returns the tasks of the running event loop; called after `eager_task_begins`.
        every: whether each task has a lane, however short it is and however many there are.
    """

def watch_steps(
    category: Category | None,
    describe: Callable[[Any], tuple[str, Flow]],
    known: dict[Any, tuple[str, Flow]],
    types: Callable[[], tuple[type, ...]],
    awaiters: Callable[[Any], str | None] | None,
    /,
) -> None:
    """Write long steps of asyncio's tasks into a category from now on; None: stop.

    Args:
        category: the category of the slices.
        describe: returns the name and the flow of a task's steps; called for tasks not in `known`.
        known: the names and flows by weak references to tasks; `describe` fills it.
        types: returns the types of tasks; called at the first long step.
        awaiters: returns the names of the tasks that wait for a task; None if it isn't known.
    """

def long_step_ended(begin: int, handle: object, /) -> None:
    """Write the slice of a step that has begun at a time and ends now, if it is a task's step."""

def look_at_tasks() -> tuple[int, int, int]:
    """Look at the tasks that are not done; return what was left out, as three numbers.

    The first number counts tasks without a lane that are shorter than the threshold, the second one
    tasks beyond the limit of lanes per second, the third one waits below 1 ms that have no slice.
    """

def creation_begins(*args: Any, **kwargs: Any) -> int | None:
    """Return the current time. This observer is called before a task is created.

    None if no tasks are watched, or if too many tasks are created per second.
    """

def eager_task_begins(loop: object, /) -> None:
    """Search new tasks later. This observer is called before an event loop's `is_running`."""

def task_created(created: int, task: object, /) -> None:
    """Watch a new task. This observer is called after a task was created."""

def task_resumes(task: object, /) -> None:
    """Handle the begin of a step of a trio task."""

def task_suspends(task: object, /) -> None:
    """Handle the end of a step of a trio task."""

def task_exits(task: object, /) -> None:
    """Handle the end of a trio task."""

def coroutine_begin(
    coroutine: object, code: CodeType, after: int, before: int, /
) -> tuple[int, int, int]:
    """Return the address of a coroutine's frame, when its call has begun, and how accurate that is.

    The time is 0 if it is unknown. The call may have begun earlier by the last number, in ns. From
    now on the end of this call is kept for `coroutine_end`.

    Args:
        coroutine: a coroutine, or an asynchronous generator, whose call is that of its last item.
        code: its code.
        after: the call has begun after this time, in ns.
        before: the call has begun before this time.
    """

def coroutine_end(frame: int, code: CodeType, after: int, before: int, /) -> tuple[int, int]:
    """Return when a coroutine's call has ended, and by how much it may have ended later, in ns.

    The time is 0 if it is unknown.

    Args:
        frame: the address of the coroutine's frame, which `coroutine_begin` returned.
        code: its code.
        after: the call has ended after this time.
        before: the call has ended before this time.
    """

def watch_managers(
    look: Callable[[Any, Any, int, int, int, int, bool], object] | None,
    end: Callable[[Any, Any, int, int, int], object] | None,
    /,
) -> None:
    """Watch context managers made of generators from now on. If `look` is None, stop watching.

    The functions have the arguments that `watch_tasks` describes, for a context manager instead of
    a task. Its body takes the time between two steps.
    """

def look_at_managers() -> tuple[int, int, int]:
    """Look at the open context managers; return three numbers of what was left out.

    The numbers are those of `look_at_tasks`.
    """

def manager_enters(manager: object, /) -> object:
    """Watch a context manager. This observer is called before its `__enter__`."""

def manager_entered(manager: object, result: object, /) -> None:
    """Handle the end of a context manager's `__enter__`, or of the coroutine that it returned."""

def manager_exits(manager: object, /, *args: object) -> object:
    """Handle the begin of a context manager's `__exit__`."""

def manager_exited(manager: object, result: object, /) -> None:
    """Handle the end of a context manager's `__exit__`, or of the coroutine that it returned."""

def heap_start(interval: int, *, limit: int = 0, max_interval: int = 0, seed: int = 0) -> None:
    """Sample allocations of Python's three memory domains.

    Args:
        interval: How many bytes are allocated between two samples on average, at least 1.
        limit: The largest share of the process's CPU time, in thousandths, that samples may take;
            above it the interval doubles. 0: no limit.
        max_interval: The largest interval that is reached in this way, in bytes.
        seed: Seeds the random numbers of each thread that begins to allocate.

    Raises:
        RuntimeError: A profile runs already, or this is a subinterpreter.
        ValueError: An argument is out of range.
    """

def heap_unsampled(function: Callable[[], object], /) -> object:
    """Call a function whose allocations, on this thread, are left out of the profile."""

def heap_stop() -> None:
    """Stop sampling, and forget all samples. No effect if no profile runs."""

def heap_dump(
    heap: int, everything: bool, /
) -> tuple[int, int, list[tuple[int, int, int, int, int, int, int]]]:
    """Return (live bytes, their maximum, rows) of a heap.

    Args:
        heap: 0 for the domain raw, 1 for mem, 2 for obj.
        everything: Whether all stacks have a row; else those that have changed since the last dump.

    Returns:
        Rows are (stack, bytes allocated, bytes freed, samples allocated, samples freed, bytes at
        the maximum of the heap, samples at it). All but the last two are since the start.
    """

def heap_functions(least: int, /) -> list[tuple[int, int, int]]:
    """Return (number, live bytes, bytes allocated since the start) of functions, over all heaps.

    Args:
        least: How many bytes a function has allocated at least, itself.
    """

def object_graph(fd: int, max_objects: int, time_ns: int, /) -> int:
    """Start a copy of this process that writes its objects into a pipe.

    Args:
        fd: The pipe.
        max_objects: The largest number of objects, at most 2**24.
        time_ns: How long the copy looks for objects.

    Returns:
        The pid of the copy. Only a wait with `__WALL` finds it.

    Raises:
        OSError: The copy can't be made.
        RuntimeError: The caller is a subinterpreter.
        ValueError: An argument is out of range.
    """

def heap_stats() -> dict[str, int]:
    """Return dropped samples by reason (`live_full`, `out_of_memory`), and further numbers.

    `other_stacks`: samples whose stack found no room; `live`: samples whose blocks are not freed;
    `stacks`: different stacks; `interval`: the sampling interval now, in bytes; `slower`: how often
    it has doubled.
    """

def heap_stack(number: int, /) -> tuple[int, ...]:
    """Return the numbers of a stack's frames, the outermost first; empty for an unknown stack."""

def heap_frame(number: int, /) -> tuple[int, int]:
    """Return (number of the function, line) of a frame; (0, 0) for an unknown one."""

def heap_function(number: int, /) -> tuple[str, str]:
    """Return (qualified name, file) of a function.

    Raises:
        LookupError: There is no such function.
    """

@final
class Around:
    """A wrapper of a function that calls an observer before and after each call.

    The wrapper adds no Python frame. It binds like the function, and has its attributes. A call of
    the wrapper calls

    - `before(*args, **kwargs)`, which returns a token;
    - the function;
    - `after(token, result)`, unless the token is None. `result` is None if the function raised.

    Without `before`, the function is `Handle._run` of asyncio, whose calls are steps of the watched
    tasks. The wrapper calls `after(begin_ns, handle)` if the step took at least as long as the
    threshold.

    The call returns the function's result, or raises its exception. Exceptions of the observers are
    dropped. But if a signal handler of the program raises while an observer runs, its exception is
    raised after the call.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        before: Callable[..., Any] | None,
        after: Callable[[Any, Any], object] | None = None,
    ) -> None: ...
    @property
    def __wrapped__(self) -> Callable[..., Any]: ...
    def __get__(self, instance: object, owner: type | None = None, /) -> Any: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
