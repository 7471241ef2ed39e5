"""The messages that ship with protobuf: `google/protobuf/timestamp.proto` and its like.

A schema imports them without having them. Classes that are generated for such a schema refer
to the modules here, so that nothing else has to be generated or installed:

    google/protobuf/timestamp.proto  -->  stretto.protozero.well_known.timestamp_pbzero

They are generated (`make generate`) from the descriptors inside the `protobuf` distribution;
`descriptors` keeps these for the generator, which so reads an import that no folder has.
"""
