"""The TraceConfig of a recording with the machine's tracing service (`--system`).

    buffer 0    the program: its events, its counters
    buffer 1    all other producers: track events of the categories that are on by default, and
                the data sources of --data-source
    buffer 2…   the buffers of --config, for its data sources

The names of the program's producers start with MARK, the names of other producers don't. So
function calls are recorded in the program only.
"""

from __future__ import annotations

from stretto.base.errors import CommandError, ConfigError
from stretto.protos.config import DataSourceConfig, TraceConfig, TrackEventConfig
from stretto.recorder.host.config import make_config

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from stretto.recorder.host.options import RecordingOptions

MARK = "@"
OTHERS = f"[^{MARK}].*"
"""Matches the names of producers that no recorder has started. A POSIX regular expression: the
service may be Perfetto's."""
OTHERS_BUFFER = 1
TRACK_EVENT = "track_event"


def make_system_config(options: RecordingOptions, name: str, *, to_file: bool) -> TraceConfig:
    """Build the config of a session of the machine's service.

    Args:
        options: the options of the recording.
        name: name of the session, and of the program's producers.
        to_file: whether the trace is written into a file, not into a pipe.

    Raises:
        CommandError: the file of --config can't be used.
    """
    config = make_config(options, to_file=to_file)
    config.unique_session_name = name
    for source in config.data_sources:
        source.producer_name_filter = [name]
    config.buffers.append(TraceConfig.BufferConfig(size_kb=config.buffers[0].size_kb))
    added = _read_config(options.config_path) if options.config_path else TraceConfig()
    _add(config, added)
    for data_source in options.data_sources:
        config.data_sources.append(_source(data_source))
    if not _names_track_events(added.data_sources):
        others = _source(TRACK_EVENT)
        others.config.track_event_config = TrackEventConfig()  # type: ignore[union-attr]  # set
        config.data_sources.append(others)
    _exclude_the_program(config.data_sources)
    return config


def _source(name: str) -> TraceConfig.DataSource:
    return TraceConfig.DataSource(
        config=DataSourceConfig(name=name, target_buffer=OTHERS_BUFFER),
    )


def _names_track_events(sources: Sequence[TraceConfig.DataSource]) -> bool:
    return any(source.config and source.config.name == TRACK_EVENT for source in sources)


def _exclude_the_program(sources: Sequence[TraceConfig.DataSource]) -> None:
    """Exclude the program's producers from track event data sources that have no filter."""
    for source in sources:
        filtered = source.producer_name_filter or source.producer_name_regex_filter
        if source.config and source.config.name == TRACK_EVENT and not filtered:
            source.producer_name_regex_filter = [OTHERS]


def _read_config(path: str) -> TraceConfig:
    from stretto.protozero.text_format import parse_text

    try:
        with open(path, encoding="utf-8") as file:
            return parse_text(file.read(), TraceConfig, path)
    except OSError as error:
        raise CommandError(f"record: --config {path!r}: {error.strerror}.", 2) from error
    except UnicodeDecodeError as error:
        raise CommandError(
            f"record: --config {path!r} is no text: give a TraceConfig in text form.", 2
        ) from error
    except ConfigError as error:
        raise CommandError(f"record: --config: {error}", 2) from error


def _add(config: TraceConfig, added: TraceConfig) -> None:
    """Append the data sources and buffers of another config."""
    first = len(config.buffers) if added.buffers else OTHERS_BUFFER
    config.buffers.extend(added.buffers)
    for source in added.data_sources:
        if source.config is not None and not source.config.target_buffer_name:
            source.config.target_buffer = first + source.config.target_buffer
        config.data_sources.append(source)
