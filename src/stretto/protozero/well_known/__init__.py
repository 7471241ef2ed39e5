"""The messages that ship with protobuf, such as `google/protobuf/timestamp.proto`.

Schemas import these files without containing them. Classes generated for such schemas refer to
these modules, so nothing else has to be generated or installed:

    google/protobuf/timestamp.proto  -->  stretto.protozero.well_known.timestamp_pbzero

The modules are generated (`make generate`) from the descriptors in the `protobuf` distribution.
`descriptors` contains these descriptors; the generator uses it for imports that aren't found in any
folder.
"""
