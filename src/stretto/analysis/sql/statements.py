"""PerfettoSQL's own statements."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, NoReturn

from stretto.analysis.sql.declarations import MACRO_TYPES, TYPES, Declared, check_type, declarations
from stretto.analysis.sql.errors import located
from stretto.analysis.sql.inspection import FORMS, inspection
from stretto.analysis.sql.tokens import Token, check_encoding, closing, source, split, tokenize
from stretto.base.nearest_name import MISTYPED, nearest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Statement(NamedTuple):
    """A statement of any kind.

    Attributes:
        kind: `table`, `view`, `function`, `table function`, `macro`, `index`, `drop index`,
            `include`, `span join`, `new span join` (if there is no such table), one of
            `inspection.py:KINDS` or, for plain SQL, `sql`.
        text: The SQL; of PerfettoSQL's own statements only the part after `as` or `using`.
        start: Its position in the user's text.
        name: The name of what is created or included; for `index` the name of the table.
        replaces: Whether the statement says `or replace`.
        parameters: The parameters of a function or macro, in lower case.
        columns: The declared columns of a table, view or table function; those of an index.
        returns: The type that a function or macro returns, in lower case.
        types: The types of the parameters of a function, in lower case.
    """

    kind: str
    text: str
    start: int
    name: str = ""
    replaces: bool = False
    parameters: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    returns: str = ""
    types: tuple[str, ...] = ()


def statements(text: str) -> Iterator[Statement]:
    """Yield the statements of a text.

    Raises:
        QueryError: A statement of PerfettoSQL is wrong, or the text is not UTF-8.
    """
    check_encoding(text)
    for tokens in split(tokenize(text), ";"):
        if tokens:
            yield _Reader(text, tokens).statement()


def tokens_of(statement: Statement, text: str) -> list[Token]:
    """Return the tokens of a statement's SQL, with their positions in the user's text.

    They have the position of the statement if the SQL isn't in the text as it is.
    """
    own = tokenize(statement.text)
    whole = [token for token in tokenize(text) if token.start >= statement.start]
    words = [token.text for token in own]
    for i in range(len(whole) - len(own) + 1):
        part = whole[i : i + len(own)]
        if [token.text for token in part] == words:
            return part
    return [token._replace(start=statement.start) for token in own]


_LEGACY = {
    "create_function": ("create or replace perfetto function {} returns {} as {}", 3),
    "create_view_function": (
        "create or replace perfetto function {} returns table({}) as {}",
        3,
    ),
    "experimental_memoize": ("select 1 as memoized", 1),
    "import": ("include perfetto module {}", 1),
}
"""Functions that were replaced by statements: the statement, and the number of arguments."""


_ORDINARY = frozenset(
    "select with values create drop alter insert replace update delete explain analyze pragma "
    "reindex".split()
)
"""The first words of SQLite's statements."""
_OWN = ("include", "show", "describe")
"""The first words of the other statements."""
_POSSIBLE = (
    " A query begins with select or with; there are also create, drop, insert, include perfetto "
    f"module; {FORMS}"
)
_CREATED = ("table", "view", "function", "macro", "index")
"""What `create perfetto` creates."""
_REFUSED = frozenset(
    "attach begin call checkpoint commit copy detach export import install load reset rollback "
    "savepoint set use vacuum".split()
)
"""The first words of statements about files, or about the engine."""


class _Reader:
    """Reads one statement."""

    def __init__(self, text: str, tokens: list[Token]) -> None:
        self._text = text
        self._tokens = tokens
        self._next = 0

    def statement(self) -> Statement:
        shown = inspection([token.text for token in self._tokens])
        if shown is not None:
            kind, table = shown
            return Statement(kind, table, self._tokens[-1].start, table)
        if self._accept("include"):
            self._expect("perfetto")
            self._expect("module")
            return self._include()
        if self._accept("drop") and self._accept("perfetto"):
            self._expect("index")
            return self._index("drop index", self._start(), self._name())
        self._next = 0
        if self._accept("select"):
            legacy = self._legacy()
            if legacy is not None:
                return legacy
        self._next = 0
        if self._accept("create"):
            replaces = self._accept("or") and self._expect("replace")
            if self._accept("perfetto"):
                return self._created(replaces)
            if self._accept("virtual"):
                return self._virtual_table()
            self._check_spelling("perfetto")
        self._next = 0
        self._check_first_word()
        return Statement("sql", source(self._text, self._ordinary()), self._tokens[0].start)

    def _check_spelling(self, *expected: str) -> None:
        """Raise the error for a mistyped keyword, if the next word is similar to one of these."""
        token = self._peek()
        if token is not None and (advice := nearest(token.text, expected, MISTYPED)):
            self._fail(f"syntax error at {token.text}.{advice}")

    def _check_first_word(self) -> None:
        first = self._tokens[0]
        word = first.text.lower()
        if word in _REFUSED:
            self._fail(f"{word} is not available: a query has no files, settings or transactions")
        if word in ("show", "describe", "."):
            self._fail(f"there is no such command; these show what there is: {FORMS}")
        if first.kind == "word" and word not in _ORDINARY:
            advice = nearest(word, [*_ORDINARY, *_OWN], MISTYPED) or _POSSIBLE
            self._fail(f"no statement begins with {first.text}.{advice}")

    def _ordinary(self) -> list[Token]:
        """Return the tokens without `without rowid`, which only says how rows are stored."""
        last = self._tokens[-2:]
        if [token.text.lower() for token in last] == ["without", "rowid"]:
            return self._tokens[:-2]
        return self._tokens

    def _legacy(self) -> Statement | None:
        """Read `create_function('f(x INT)', 'INT', 'body')` and its like, after `select`."""
        name = self._tokens[self._next].text.lower() if self._peek() else ""
        texts = [t.text[1:-1].replace("''", "'") for t in self._tokens if t.kind == "string"]
        form, count = _LEGACY.get(name, ("", -1))
        if len(texts) != count or len(self._tokens) != 2 * count + 3:
            return None
        (statement,) = statements(form.format(*texts))
        return statement._replace(start=self._tokens[0].start)

    def _peek(self) -> Token | None:
        return self._tokens[self._next] if self._next < len(self._tokens) else None

    def _accept(self, word: str) -> bool:
        token = self._peek()
        if token is None or token.text.lower() != word:
            return False
        self._next += 1
        return True

    def _expect(self, word: str) -> bool:
        if not self._accept(word):
            self._check_spelling(word)
            self._fail(f"expected {word!r} here")
        return True

    def _fail(self, problem: str) -> NoReturn:
        raise located(problem, self._text, self._start())

    def _start(self) -> int:
        token = self._peek()
        return token.start if token else self._tokens[-1].end

    def _name(self) -> str:
        token = self._peek()
        if token is None or token.kind not in ("word", "quoted"):
            self._fail("expected a name here")
        self._next += 1
        return token.text.strip('"`[]')

    def _rest(self) -> str:
        if self._peek() is None:
            self._fail("expected more SQL here")
        return source(self._text, self._tokens[self._next :])

    def _include(self) -> Statement:
        start = self._start()
        parts = self._tokens[self._next :]
        if not parts or any(p.kind not in ("word", "operator") for p in parts):
            self._fail("expected the name of a module here")
        return Statement("include", "", start, "".join(part.text for part in parts))

    def _declared(self, types: Sequence[str]) -> list[Declared]:
        """Read `(name TYPE, …)`; the types are some of these."""
        first, last = self._parentheses()
        return declarations(self._text, self._tokens[first:last], self._tokens[last].start, types)

    def _parentheses(self) -> tuple[int, int]:
        """Skip what is in parentheses; return where that begins and ends."""
        self._expect("(")
        first = self._next
        last = closing(self._tokens, first - 1, self._text)
        self._next = last + 1
        return first, last

    def _columns(self) -> tuple[str, ...]:
        """Read the declared columns, of which there is at least one; return their names."""
        declared = self._declared(TYPES)
        if not declared:
            self._next -= 1
            self._fail("expected a column here")
        return tuple(column for column, _ in declared)

    def _parenthesized(self) -> bool:
        token = self._peek()
        return token is not None and token.text == "("

    def _created(self, replaces: bool) -> Statement:
        for kind in _CREATED:
            if self._accept(kind):
                break
        else:
            self._check_spelling(*_CREATED)
            self._fail("expected table, view, function, macro or index here")
        start, name = self._start(), self._name()
        if kind == "index":
            return self._index(kind, start, name, replaces)
        if kind in ("function", "macro"):
            return self._callable(kind, start, name.lower(), replaces)
        columns = self._columns() if self._parenthesized() else ()
        self._expect("as")
        return Statement(kind, self._rest(), start, name, replaces, columns=columns)

    def _index(self, kind: str, start: int, name: str, replaces: bool = False) -> Statement:
        self._expect("on")
        table = self._name()
        columns = self._indexed() if kind == "index" else ()
        if (token := self._peek()) is not None:
            self._fail(f"{token.text} is not expected here")
        return Statement(kind, "", start, table, replaces, (name.lower(),), columns)

    def _indexed(self) -> tuple[str, ...]:
        """Read the columns of an index: `(a, b)`."""
        first, last = self._parentheses()
        self._next = first
        columns = [self._name()]
        while self._accept(","):
            columns.append(self._name())
        if self._next != last:
            self._fail("expected , or ) here")
        self._next += 1
        return tuple(columns)

    def _callable(self, kind: str, start: int, name: str, replaces: bool) -> Statement:
        declared = self._declared(MACRO_TYPES if kind == "macro" else TYPES)
        self._expect("returns")
        returned, returns = self._next, self._name().lower()
        columns: tuple[str, ...] = ()
        if returns == "table" and kind == "function":
            kind, columns = "table function", self._columns()
        elif kind == "macro":
            check_type(self._text, self._tokens[returned], MACRO_TYPES)
        elif self._parenthesized():  # A type such as ID(slice.id); or the table of a mistyped word.
            check_type(self._text, self._tokens[returned], (*TYPES, "table"))
            self._parentheses()
        self._expect("as")
        parameters, types = (tuple(part[i] for part in declared) for i in range(2))
        return Statement(
            kind, self._rest(), start, name, replaces, parameters, columns, returns, types
        )

    def _virtual_table(self) -> Statement:
        self._expect("table")
        only_new = self._accept("if") and self._expect("not") and self._expect("exists")
        start, name = self._start(), self._name()
        self._expect("using")
        if not self._name().lower().startswith("span_"):
            self._fail("of all virtual tables, only span joins are available")
        self._next -= 1
        kind = "new span join" if only_new else "span join"
        return Statement(kind, self._rest(), start, name)
