from __future__ import annotations

import pytest

from stretto.base.errors import CommandError, ConfigError
from stretto.cli.record.arguments import RecordOptions
from stretto.cli.record.options import parse_time_ns
from stretto.client.recording import CATEGORY_OPTIONS


@pytest.mark.parametrize(
    ("arguments", "program"),
    [
        (["app.py"], ["app.py"]),
        (["app.py", "-q", "--stream"], ["app.py", "-q", "--stream"]),
        (["--", "-q"], ["-q"]),
        (["-q", "--", "--", "x"], ["--", "x"]),
        (["-m", "mod", "-q"], ["-m", "mod", "-q"]),
        (["-mmod"], ["-mmod"]),
        (["-q", "-c", "code", "--stream"], ["-c", "code", "--stream"]),
        (["-o", "out", "app.py"], ["app.py"]),
        (["-oout", "app.py"], ["app.py"]),
        (["--output=out", "app.py"], ["app.py"]),
        (["--buffer", "1mb", "--stream", "cmd", "--buffer"], ["cmd", "--buffer"]),
        (["-"], ["-"]),
    ],
)
def test_arguments_after_the_program_name_belong_to_the_program(arguments, program):
    assert RecordOptions(arguments).program == program


def test_options_have_their_default_values():
    options = RecordOptions(["app.py"])
    assert options.output == "trace.pftrace"
    assert options.recording.buffer_bytes == 64 << 20
    assert options.recording.duration_ms == 0
    assert (options.quiet, options.recording.counters) == (False, True)
    assert set(options.recording.categories) == {
        "python.functions",
        "python.managers",
        "python.gc",
        "python.asyncio",
        "python.log",
        "python.exceptions",
    }


def test_waits_are_recorded_on_request():
    options = RecordOptions(["--waits", "--category", "mine", "app.py"])
    assert options.recording.categories[-3:] == ["python.waits", "python.loops", "mine"]


def test_waits_for_the_gil_are_recorded_on_request():
    options = RecordOptions(["--gil-waits", "app.py"])
    assert options.recording.categories[-1] == "python.gil_waits"
    assert "python.waits" not in options.recording.categories


def test_waits_in_system_calls_are_recorded_on_request():
    assert RecordOptions(["--io-waits", "app.py"]).recording.io_waits
    assert not RecordOptions(["--waits", "app.py"]).recording.io_waits
    with pytest.raises(CommandError, match="--io-waits doesn't go with --system"):
        RecordOptions(["--io-waits", "--system", "app.py"])


def test_recording_with_children_records_no_built_in_category_by_default():
    options = RecordOptions([*CATEGORY_OPTIONS, "--no-functions", "app.py"])
    assert options.recording.categories == []


@pytest.mark.parametrize(
    ("words", "interval", "every_ms", "at_max"),
    [
        (["--heap"], 65536, 10_000, False),
        (["--heap=4k"], 4096, 10_000, False),
        (["--heap=100", "--heap-every", "2s"], 100, 2_000, False),
        (["--heap", "--heap-max"], 65536, 10_000, True),
    ],
)
def test_heap_has_an_interval_of_samples_and_of_dumps(words, interval, every_ms, at_max):
    options = RecordOptions([*words, "app.py", "--heap=1"])
    assert options.program == ["app.py", "--heap=1"]
    heap = options.recording.heap
    assert heap is not None
    assert (heap.interval, heap.dump_interval_ms, heap.at_max) == (interval, every_ms, at_max)
    assert options.recording.target["heap"] == ["1"]


def test_object_graph_is_an_option_of_recorder_and_program():
    assert not RecordOptions(["app.py"]).recording.object_graph
    options = RecordOptions(["--object-graph", "app.py"])
    assert options.recording.object_graph
    assert options.recording.target["object_graph"] == ["1"]


def test_options_of_heap_profiles_need_one():
    assert RecordOptions(["app.py"]).recording.heap is None
    for words in (
        ["--heap-max"],
        ["--heap-every", "1s"],
        ["--heap", "--heap-max", "--heap-every=1s"],
    ):
        with pytest.raises(CommandError, match="--heap"):
            RecordOptions([*words, "app.py"])


AUTO = {"include": [], "exclude": [], "auto_detail": ["1"]}
EVERY_CALL = {"include": [], "exclude": []}
SAMPLED = {**EVERY_CALL, "long_steps": ["1"]}


@pytest.mark.parametrize(
    ("options", "stream", "size", "target"),
    [
        (["--auto"], True, 256 << 20, AUTO),
        (["--auto", "--size", "8mb"], True, 8 << 20, AUTO),
        (["--full"], True, 0, {**EVERY_CALL, "imports": ["full"]}),
        (["--stream", "--buffer", "1mb"], True, 0, {**EVERY_CALL, "imports": ["full"]}),
        (["--sample", "100hz"], True, 0, SAMPLED),
        (["--ring"], False, 0, EVERY_CALL),
        (["--buffer", "1mb"], False, 0, EVERY_CALL),
        (["--system"], False, 0, EVERY_CALL),
    ],
)
def test_options_determine_streaming_size_and_detail(options, stream, size, target):
    recording = RecordOptions([*options, "x.py"]).recording
    assert (recording.stream, recording.auto_size, recording.target) == (stream, size, target)
    assert recording.max_size == (size or None)


def test_auto_detail_is_the_default():
    recording = RecordOptions(["x.py"]).recording
    assert recording.target == AUTO
    assert recording.stream


def test_options_are_passed_to_recorded_processes():
    options = RecordOptions(
        "--include a --include b/c --exclude d --min-duration 2us".split()
        + "--max-depth 9 --c-functions x.py".split()
    )
    assert options.recording.target == {
        "include": ["a", "b/c"],
        "exclude": ["d"],
        "min_duration_ns": ["2000"],
        "max_depth": ["9"],
        "c_functions": ["1"],
    }


@pytest.mark.parametrize(
    ("option", "category"),
    [
        ("--no-functions", "python.functions"),
        ("--no-managers", "python.managers"),
        ("--no-gc", "python.gc"),
        ("--no-asyncio", "python.asyncio"),
        ("--no-logs", "python.log"),
        ("--no-exceptions", "python.exceptions"),
    ],
)
def test_each_negative_option_disables_one_category(option, category):
    everything = set(RecordOptions(["x.py"]).recording.categories)
    assert everything - set(RecordOptions([option, "x.py"]).recording.categories) == {category}


@pytest.mark.parametrize(("text", "ms"), [("2s", 2000), ("0.5s", 500), ("1m", 60_000), ("1us", 1)])
def test_duration_is_rounded_up_to_milliseconds(text, ms):
    assert RecordOptions(["--duration", text, "x.py"]).recording.duration_ms == ms


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "name the program"),
        (["-q"], "name the program"),
        (["--quiett", "x.py"], "unrecognized arguments: --quiett"),
        (["--qui", "x.py"], "unrecognized"),
        (["--max-size", "1mb", "x.py"], "--max-size goes with --full"),
        (["--auto", "--max-size", "1mb", "x.py"], "--max-size goes with --full"),
        (["--auto", "--min-duration", "1us", "x.py"], "--auto doesn't go with --min-duration"),
        (["--auto", "--ring", "x.py"], "--auto and --ring: choose one"),
        (["--buffer", "1", "x.py"], "from 4k up to below 4g"),
        (["--max-depth", "-1", "x.py"], "frames from 1"),
        (["--duration=-1s", "x.py"], "isn't a time"),
        (
            ["--duration", "5", "x.py"],
            "'5' isn't a time: the unit is missing, as in 5ms or 5s",
        ),
        (
            ["--min-duration", "5", "x.py"],
            "'5' isn't a time: the unit is missing, as in 5ms or 5s",
        ),
        (["--min-duration", "-5us", "x.py"], "'-5us' isn't a time above 0: give a number"),
        (["-t", "-.5s", "x.py"], "'-.5s' isn't a time above 0: give a number"),
        (["--heap-every", "0s", "--heap", "x.py"], "'0s' isn't a time above 0: give a number"),
        (["--buffer", "-5mb", "x.py"], "size '-5mb': give a size like 64mb, 512k or 1g"),
        (["--max-depth", "-3", "x.py"], "'-3': give a number of frames from 1 to 1048576"),
        (["--sample", "-5hz", "x.py"], "'-5hz' is no rate from 1hz to 20000hz"),
        (["--sample", "10", "x.py"], "'10' is no rate from 1hz to 20000hz"),
        (["--sample", "10hzz", "x.py"], "'10hzz' is no rate from 1hz to 20000hz"),
        (["-o"], "expected one argument"),
    ],
)
def test_invalid_options_are_refused(arguments, says):
    with pytest.raises(CommandError, match=says) as caught:
        RecordOptions(arguments)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("text", "ns"),
    [("50us", 50_000), (" 1.5ms ", 1_500_000), ("7ns", 7), ("2m", 120_000_000_000)],
)
def test_time_with_unit_is_parsed(text, ns):
    assert parse_time_ns(text) == ns


@pytest.mark.parametrize(
    "text", ["", "us", "5", "5 years", "1e999s", "0s", "-1s", "nans", "infs", "1.5.1s"]
)
def test_invalid_time_is_refused(text):
    with pytest.raises(ConfigError, match="isn't a time"):
        parse_time_ns(text)


@pytest.mark.parametrize(
    "arguments",
    [["--full"], ["--ring"], ["--auto"], ["--include", "a"], ["--system"], ["--attach", "7"]],
)
def test_samples_exclude_options_of_function_calls(arguments):
    with pytest.raises(CommandError, match=f"--sample doesn't go with {arguments[0]}"):
        RecordOptions(["--sample", "100hz", *arguments, "app.py"])


def test_rate_of_samples_is_a_period_in_nanoseconds():
    options = RecordOptions(["--sample", "100hz", "app.py"]).recording
    assert (options.sample_ns, options.sample_sources) == (10_000_000, ["python.cpu"])


@pytest.mark.parametrize("name", ["stack_samples", "native"])
def test_form_of_samples_needs_samples(name):
    option = "--" + name.replace("_", "-")
    with pytest.raises(CommandError, match=f"{option} goes with --sample"):
        RecordOptions([option, "app.py"])
    options = RecordOptions(["--sample", "100hz", option, "app.py"]).recording
    assert getattr(options, name)


@pytest.mark.parametrize("source", ["python.wall", "linux.ftrace"])
def test_data_sources_need_samples_or_a_system_recording(source):
    with pytest.raises(CommandError, match=r"python\.cpu, python\.wall, python\.gil"):
        RecordOptions(["--data-source", source, "app.py"])
