"""Tests of handles: ownership, types and rights."""

from __future__ import annotations

import os

import pytest

from fidl_support.ir import library
from stretto_fidl import codec
from stretto_fidl.bindings import load
from stretto_fidl.codec import wire_error
from stretto_fidl.codec.handle import (
    ANY,
    BASIC_RIGHTS,
    CHANNEL,
    DEFAULT_RIGHTS,
    EVENT,
    RIGHTS,
    SAME_RIGHTS,
    Handle,
    HandleDisposition,
)

TYPES = load(library(structs={"Basic": "h handle:event,0xc003", "Two": "a handle, b handle"}))


def is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


@pytest.fixture
def handle():
    with Handle(os.eventfd(0), EVENT) as made:
        yield made


class TestHandleOwnership:
    def test_second_close_of_a_handle_does_nothing(self, handle: Handle) -> None:
        fd = handle.fd
        handle.close()
        handle.close()
        assert not is_open(fd)
        assert not handle.is_open

    def test_with_block_closes_the_descriptor(self) -> None:
        with Handle(os.eventfd(0)) as handle:
            fd = handle.fileno()
        assert not is_open(fd)

    def test_last_reference_closes_the_descriptor(self) -> None:
        handle = Handle(os.eventfd(0))
        fd = handle.fd
        del handle
        assert not is_open(fd)

    def test_deleting_a_handle_raises_no_error_if_its_descriptor_is_already_closed(self) -> None:
        handle = Handle(os.eventfd(0))
        os.close(handle.fd)
        del handle

    def test_detached_descriptor_stays_open(self, handle: Handle) -> None:
        fd = handle.detach()
        handle.close()
        assert is_open(fd)
        os.close(fd)

    def test_duplicated_handle_has_another_descriptor(self, handle: Handle) -> None:
        with handle.duplicate() as other:
            assert other.fd != handle.fd
            assert (other.object_type, other.rights) == (handle.object_type, handle.rights)

    def test_closed_handle_cannot_be_used_or_encoded(self, handle: Handle) -> None:
        handle.close()
        for use in (lambda: handle.fd, handle.detach, handle.duplicate):
            with pytest.raises(codec.WireError, match=wire_error.HANDLE_CLOSED):
                use()
        with pytest.raises(codec.WireError, match=r"b: .*HANDLE_CLOSED"):
            codec.encode(TYPES.Two(a=Handle(os.eventfd(0)), b=handle))

    def test_handles_still_belong_to_the_value_after_encoding(self, handle: Handle) -> None:
        codec.encode(TYPES.Basic(h=handle))
        assert handle.is_open

    def test_repr_shows_the_type_and_the_descriptor_or_the_word_closed(
        self, handle: Handle
    ) -> None:
        assert repr(handle) == f"<Handle event fd {handle.fd}>"
        handle.close()
        assert repr(handle) == "<Handle event closed>"


class TestHandleRights:
    def test_new_handle_has_the_default_rights_of_its_type(self, handle: Handle) -> None:
        assert handle.rights == DEFAULT_RIGHTS[EVENT] == BASIC_RIGHTS | RIGHTS["signal"]

    def test_decoded_handle_keeps_only_the_rights_of_its_definition(self, handle: Handle) -> None:
        data, _ = codec.encode(TYPES.Basic(h=handle))
        assert codec.decode(TYPES.Basic, data, [handle]).h.rights == BASIC_RIGHTS

    def test_handle_with_unknown_rights_gets_the_rights_of_the_check(self, handle: Handle) -> None:
        handle.rights = SAME_RIGHTS
        handle.check(EVENT, BASIC_RIGHTS)
        assert handle.rights == BASIC_RIGHTS

    def test_check_with_same_rights_changes_no_rights(self, handle: Handle) -> None:
        handle.check(ANY, SAME_RIGHTS)
        assert handle.rights == DEFAULT_RIGHTS[EVENT]

    def test_missing_rights_are_named_in_the_error(self, handle: Handle) -> None:
        with pytest.raises(codec.WireError, match="lacks rights: write"):
            handle.check(EVENT, RIGHTS["write"])


class TestHandlesOfUnknownMembers:
    """Tests that decoding closes handles of unknown members only."""

    def test_handles_of_unknown_table_members_are_closed(self, handle: Handle) -> None:
        types = load(library(tables={"ResourceT": "1: h handle"}))
        data = bytes.fromhex("0300000000000000 ffffffffffffffff ffffffff01000100 0000000000000000")
        unknown = [Handle(os.eventfd(0)) for _ in range(2)]
        value = codec.decode(
            types.ResourceT, data + bytes.fromhex("0800000002000000") + bytes(8), [handle, *unknown]
        )
        assert value.h is handle
        assert handle.is_open
        assert not any(each.is_open for each in unknown)

    def test_handle_of_an_unknown_union_member_is_closed(self, handle: Handle) -> None:
        types = load(library(unions={"ResourceU": "1: h handle"}))
        data = bytes.fromhex("0900000000000000 ffffffff01000100")
        assert codec.decode(types.ResourceU, data, [handle]).is_unknown
        assert not handle.is_open


class TestHandleDisposition:
    def test_encoding_returns_the_type_and_rights_of_each_handle(self, handle: Handle) -> None:
        _, (disposition,) = codec.encode(TYPES.Basic(h=handle))
        assert (disposition.handle, disposition.object_type) == (handle, EVENT)
        assert disposition.rights == BASIC_RIGHTS
        assert disposition.transfer() is handle
        assert handle.rights == BASIC_RIGHTS

    def test_transfer_refuses_a_handle_of_another_type(self, handle: Handle) -> None:
        with pytest.raises(codec.WireError, match=r"event, not a channel .INCORRECT_HANDLE_TYPE"):
            HandleDisposition(handle, CHANNEL).transfer()

    def test_transfer_refuses_a_handle_without_the_required_rights(self, handle: Handle) -> None:
        handle.rights = 0
        with pytest.raises(codec.WireError, match=wire_error.MISSING_REQUIRED_HANDLE_RIGHTS):
            HandleDisposition(handle, EVENT, BASIC_RIGHTS).transfer()
