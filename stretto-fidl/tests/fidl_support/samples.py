"""FIDL definitions in the old and new syntax to mutate, and words for the mutations."""

from __future__ import annotations

SAMPLES = (
    """\
@available(added=1)
library test.sample;
using zx;
/// Documented.
const LIMIT uint32 = 4 | 0b1000;
type Color = strict enum : uint8 { RED = 1; BLUE = 2; };
type Modes = flexible bits { A = 1; B = 0x2; };
type Point = struct { x float32; y array<int16, 3>; next box<Point>; };
type Options = resource table { 1: name string:LIMIT; 2: reserved; };
type Choice = flexible union { 1: a vector<Point>:LIMIT; 2: b struct { c bool; }; };
alias Vmo = zx.Handle:<VMO, zx.Rights.READ | zx.Rights.WRITE>;
@discoverable
open protocol Control {
    compose Base;
    @trace("control") Do(resource struct { vmo Vmo; }) -> (Choice) error Color2;
    flexible -> OnEvent(struct { m Modes; });
    strict Stop();
};
ajar protocol Base { strict Ping() -> (); };
type Color2 = enum : int32 { BAD = -1; };
service S { control client_end:Control; };
""",
    """\
library test.old;
[Doc = "x"]
struct S { array<uint8>:4 a; string:5? b; handle<vmo>? c; S? d; P p; request<P> r; };
enum E : int32 { A = 1; };
union U { 1: S a; 2: reserved; };
const uint32 N = 5;
using T = vector<S>:N;
[Discoverable]
protocol P { [Trace = "x"] M(int32 a, T b) -> (U c) error E; -> V(string s); };
""",
)
WORDS = [
    *"library using as type struct table union enum bits overlay protocol service const".split(),
    *"alias resource strict flexible open ajar closed compose error reserved optional".split(),
    *"vector array string box client_end server_end uint8 bool handle request a B c D".split(),
    *"resource_definition properties @a ( ) { } < > [ ] : ; , . ? = | -> 0 1 -1 0x2 1.5".split(),
    '"x"',
    "/// doc\n",
    "library test;",
    "type A = struct {",
    "};",
]  # fmt: skip
