"""Puts what the caller may see in the place of each table that a statement names: with masks in the place of values, and with the
rows of the caller alone.

    FROM orders o   →   FROM (SELECT id, '[masked]' AS card FROM public.orders AS _t WHERE _t.manager = 'ann' OFFSET 0) AS o

`OFFSET 0` keeps the planner from evaluating a condition of the statement on rows that the caller may not see: an error that it
raises would quote them. Common table expressions are renamed, so that none is taken for a table outside its scope.
"""

from collections.abc import Collection, Mapping, Sequence

from sqlglot import exp

from services.tools.sql.models import DatabaseColumn, DatabaseTable, Dialect, SqlRefused, Statement
from services.tools.sql.statements import with_values

MASK = "[masked]"
CTE = "cte_"
"""What the names of common table expressions begin with."""
_INNER = "_t"
_TEXT_TYPES = ("char", "text", "clob", "string")
_NEAR_MAX = 5


class Views:
    """What a caller sees of each table that may be read."""

    def __init__(
        self,
        tables: Sequence[DatabaseTable],
        conditions: Mapping[str, exp.Expr],
        values: Mapping[str, str],
        dialect: Dialect,
        schema: str,
    ) -> None:
        """`conditions` by the table's name; `values` for their placeholders; `schema` of tables that they name without one."""
        self._tables = tables
        self._conditions = {name.casefold(): condition for name, condition in conditions.items()}
        self._values = values
        self._dialect = dialect
        self._schema = schema

    def statement(self, query: exp.Query) -> Statement:
        """What is shown of the query, and what is run. Raises SqlRefused for a table that may not be read."""
        shown = query.sql(self._dialect.value, comments=False, pretty=True)
        query = query.copy()
        self._check_quoted(query)
        ctes = self._rename_ctes(query)
        read: dict[str, DatabaseTable] = {}
        for node in list(query.find_all(exp.Table)):
            if node.name in ctes and not node.db:
                continue
            table = self._table(node)
            read[f"{table.schema}.{table.name}"] = table
            self._replace(node, table)
        for column in query.find_all(exp.Column):
            column.set("db", None)
            column.set("catalog", None)
        run = query.sql(self._dialect.value, comments=False)
        limited = [table.name for table in read.values() if table.name.casefold() in self._conditions]
        masked = [f"{table.name}.{each.name}" for table in read.values() for each in table.columns if each.is_masked]
        return Statement(shown, run, tuple(limited), tuple(masked))

    def _rename_ctes(self, query: exp.Query) -> Collection[str]:
        """The new names. A reference keeps its old name as its alias."""
        nodes = list(query.find_all(exp.CTE))
        names = {self._folded(node.args["alias"].this): node for node in nodes}
        for name in names:
            if any(each.name.casefold() == name.casefold() for each in self._tables):
                raise SqlRefused(f"WITH {name}: there is a table of that name; choose another name")
        for node in nodes:
            identifier = node.args["alias"].this
            identifier.replace(exp.to_identifier(CTE + self._folded(identifier), quoted=True))
        for table in query.find_all(exp.Table):
            if table.db or (name := self._folded(table.this)) not in names:
                continue
            if not table.alias:
                table.set("alias", exp.TableAlias(this=exp.to_identifier(name, quoted=True)))
            table.set("this", exp.to_identifier(CTE + name, quoted=True))
        return {CTE + name for name in names}

    def _folded(self, identifier: exp.Expr) -> str:
        """A name as the database understands it."""
        name = str(identifier.this)
        if self._dialect is Dialect.SQLITE or not identifier.args.get("quoted"):
            return name.lower()
        return name

    def _table(self, node: exp.Table) -> DatabaseTable:
        schema = self._folded(node.args["db"]) if node.args.get("db") else ""
        name = self._folded(node.this)
        for table in self._tables:
            known = table.name.lower() if self._dialect is Dialect.SQLITE else table.name
            is_schema = not schema or schema == table.schema or (schema == "main" and not table.schema)
            if known == name and is_schema:
                return table
        shown = [table.name for table in self._tables]
        near = [each for each in shown if name.rstrip("s").lower() in each.lower()] or shown
        listed = ", ".join(near[:_NEAR_MAX])
        raise SqlRefused(f"there is no table {name[:80]!r} that may be read; there are {listed}; describe_db shows all")

    def _replace(self, node: exp.Table, table: DatabaseTable) -> None:
        physical = exp.Table(this=_identifier(table.name), db=_identifier(table.schema) if table.schema else None)
        alias = node.args.get("alias") or exp.TableAlias(this=exp.to_identifier(self._folded(node.this), quoted=True))
        condition = self._conditions.get(table.name.casefold())
        if condition is None and not any(column.is_masked for column in table.columns):
            node.set("this", physical.this)
            node.set("db", physical.args.get("db"))
            node.set("alias", alias)
            return
        inner = physical.copy()
        inner.set("alias", exp.TableAlias(this=_identifier(_INNER)))
        view = exp.select(*map(self._seen, table.columns), copy=False).from_(inner, copy=False)
        if condition is not None:
            view = view.where(self._own(condition), copy=False)
        if self._dialect is Dialect.SQLITE:
            view = view.limit(-1, copy=False)
        view = view.offset(0, copy=False)
        kept = {name: node.args.get(name) for name in ("joins", "laterals")}
        node.replace(exp.Subquery(this=view, alias=alias, **kept))

    def _own(self, condition: exp.Expr) -> exp.Expr:
        """The condition with the caller's values, its columns those of the table: else a name could mean one outside."""
        filled = with_values(condition.copy(), self._values)

        def qualified(node: exp.Expr) -> exp.Expr:
            if isinstance(node, exp.Column) and not node.table and node.find_ancestor(exp.Query) is None:
                node.set("table", _identifier(_INNER))
            if isinstance(node, exp.Table) and not node.db and self._schema:
                node.set("db", _identifier(self._schema))
            return node

        return exp.paren(filled.transform(qualified), copy=False)

    def _seen(self, column: DatabaseColumn) -> exp.Expr:
        name = _identifier(column.name)
        if not column.is_masked:
            return exp.Column(this=name, table=_identifier(_INNER))
        is_text = not column.type or any(word in column.type.lower() for word in _TEXT_TYPES)
        hidden: exp.Expr = exp.Literal.string(MASK) if is_text else exp.Null()
        if self._dialect is Dialect.POSTGRES and is_text:
            hidden = exp.cast(hidden, "text")
        return exp.alias_(hidden, name)

    def _check_quoted(self, query: exp.Query) -> None:
        """SQLite takes a quoted name that does not exist for a text: a misspelt column would be no error."""
        if self._dialect is not Dialect.SQLITE:
            return
        known = {column.name.lower() for table in self._tables for column in table.columns}
        known |= {node.alias.lower() for node in query.walk() if node.alias}
        known |= {str(each.this).lower() for node in query.find_all(exp.TableAlias) for each in node.columns}
        for column in query.find_all(exp.Column):
            is_bare = isinstance(column.this, exp.Identifier) and column.this.args.get("quoted") and not column.table
            if is_bare and column.name.lower() not in known:
                raise SqlRefused(f"there is no column {column.name[:80]!r}; write texts in single quotes")


def _identifier(name: str) -> exp.Identifier:
    return exp.to_identifier(name, quoted=True)
