from __future__ import annotations

import pytest

from fidl_support.source import compiled, error_of

HEAD = "@available(added=1)\nlibrary test.example;\n"

LAYOUTS = {
    "bits": ("A = 1;", "A = 2;", "B = 1;"),
    "enum": ("A = 1;", "A = 2;", "B = 1;"),
    "struct": ("a uint32;", "gap uint32; %s a uint32;", "b uint32;"),
    "table": ("1: a uint32;", "2: a uint32;", "1: b uint32;"),
    "union": ("1: a uint32;", "2: a uint32;", "1: b uint32;"),
}
BASE = 'protocol Base { @selector("test.example/P.M") M(); };\n'


def members(kind: str, first: str, end: str, second: str) -> str:
    """Return a layout with two members: `first` ends in version 2, `second` begins there."""
    start = "@available(added=2)"
    second = second % start if "%s" in second else f"{start} {second}"
    return f"{HEAD}type T = {kind} {{ @available({end}) {first} {second} }};"


@pytest.mark.parametrize("kind", LAYOUTS)
def test_removed_and_replaced_members_are_checked(kind: str) -> None:
    first, moved, renamed = LAYOUTS[kind]
    name, other = ("A", "B") if kind in ("bits", "enum") else ("a", "b")
    assert "there again" in error_of(members(kind, first, "removed=2", first)).reason
    compiled(members(kind, first, "replaced=2", first))
    assert "but what replaces it" in error_of(members(kind, first, "replaced=2", moved)).reason
    assert "is used again by" in error_of(members(kind, first, "removed=2", renamed)).reason
    assert f"there is no `{name}`" in error_of(members(kind, first, "replaced=2", renamed)).reason
    compiled(members(kind, first, f'replaced=2, renamed="{other}"', renamed))
    reason = error_of(members(kind, first, 'replaced=2, renamed="x"', renamed)).reason
    assert "there is no `x`" in reason
    same = f'replaced=2, renamed="{name}"'
    assert "has this name already" in error_of(members(kind, first, same, first)).reason


def test_existing_member_may_move_to_the_offset_of_a_removed_member() -> None:
    """When a struct member is removed, later members get smaller offsets."""
    compiled(HEAD + "type T = struct { @available(removed=2) a uint8; b uint8; };")


def test_argument_called_renamed_refuses_the_name_of_an_existing_member() -> None:
    text = HEAD + 'type T = table { @available(removed=2, renamed="old") 1: a bool; %s };'
    compiled(text % "@available(added=2) 2: a bool;")
    for other in ("2: old bool;", "@available(added=2) 2: old bool;"):
        assert "choose another name" in error_of(text % other).reason


def test_replacement_of_a_declaration_needs_the_same_name() -> None:
    first = HEAD + "@available(%s) type T = struct {};\n"
    assert (
        "there again"
        in error_of(first % "removed=2" + "@available(added=2) type T = table {};").reason
    )
    compiled(first % "replaced=2" + "@available(added=2) type T = table {};")
    compiled(first % "removed=2" + "@available(added=3) type T = table {};")
    assert "with `added=2`" in error_of(first % "replaced=2").reason
    assert "only members can" in error_of(first % 'removed=2, renamed="U"').reason
    inline = "type U = struct { @available(added=2) t struct {}; };"
    assert "there again" in error_of(first % "removed=2" + inline).reason
    compiled(first % "replaced=2" + inline)


def test_members_of_a_removed_parent_need_no_replacement() -> None:
    compiled(
        HEAD + "type A = struct { @available(removed=2) t struct {}; };\n"
        "type B = struct { @available(added=2) t table {}; };\n"
        "@available(replaced=2) type C = struct { a bool; };\n"
        "@available(added=2) type C = struct {};\n"
    )


@pytest.mark.parametrize(
    ("before", "after", "base"),
    [
        ("M();", "M();", ""),
        ("M();", "compose Base;", BASE),
        ("compose Base;", "M();", BASE),
        ("compose Base;", "compose Other;", BASE + BASE.replace("Base", "Other")),
        ("compose Base;", "M();", "@available(removed=2)\n" + BASE),
    ],
)
def test_method_may_be_replaced_by_a_composed_method_and_vice_versa(
    before: str, after: str, base: str
) -> None:
    text = f"protocol P {{ @available(%s=2) {before} @available(added=2) {after} }};\n{base}"
    assert "is `removed`, but there again" in error_of(HEAD + text % "removed").reason
    compiled(HEAD + text % "replaced")


def test_method_may_be_replaced_by_an_indirectly_composed_method() -> None:
    through = "protocol P { @available(%s=2) M(); compose Between; };\n" + BASE
    through += "protocol Between { @available(added=2) compose Base; };\n"
    assert "there again" in error_of(HEAD + through % "removed").reason
    compiled(HEAD + through % "replaced")
    leaving = BASE.replace("@sel", "@available(removed=2) @sel") + (
        "protocol Between { compose Base; };\n"
        "protocol P { compose Between; @available(added=2) M(); };\n"
    )
    assert "there again" in error_of(HEAD + leaving).reason


def test_replacement_of_a_method_has_the_same_ordinal() -> None:
    text = HEAD + "protocol P { @available(%s) M(); @available(added=2) %s }; "
    other = '@selector("Other") M();'
    assert "has the ordinal" in error_of(text % ("replaced=2", other)).reason
    other = '@selector("M") N();'
    assert "is used again by" in error_of(text % ("removed=2", other)).reason
    compiled(text % ('replaced=2, renamed="N"', other))
    gone = HEAD + "protocol P { @available(replaced=2) compose Base; };\n" + BASE
    assert "no method of it" in error_of(gone).reason


def test_change_of_strictness_that_changes_the_reply_is_refused() -> None:
    text = HEAD + "protocol P { strict(removed=2) flexible(added=2) M() -> ()%s; };"
    assert "would look otherwise" in error_of(text % "").reason
    compiled(text % " error int32")
    compiled(text.replace("() -> ()%s", "()"))
