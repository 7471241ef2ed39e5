/* CPython's fast macros as functions of the limited API, for the parts of the
 * bindings that stretto._importer consists of.
 */
#pragma once

#define PyTuple_SET_ITEM(tuple, i, item) ((void)PyTuple_SetItem(tuple, i, item))
#define PyList_SET_ITEM(list, i, item) ((void)PyList_SetItem(list, i, item))
#define PyBytes_AS_STRING(bytes) PyBytes_AsString(bytes)
#define PyBytes_GET_SIZE(bytes) PyBytes_Size(bytes)
