"""The parts that a statement may consist of. What is not listed is refused, so that a part that nobody has thought of is too."""

from sqlglot import exp

from services.tools.sql.models import Dialect

STRUCTURE: frozenset[type[exp.Expr]] = frozenset(
    {
        exp.Select, exp.Union, exp.Intersect, exp.Except, exp.With, exp.CTE, exp.Subquery, exp.Table, exp.TableAlias,
        exp.Identifier, exp.Column, exp.Star, exp.Alias, exp.From, exp.Where, exp.Group, exp.Having, exp.Order,
        exp.Ordered, exp.Limit, exp.Offset, exp.Fetch, exp.Distinct, exp.Join, exp.Literal, exp.Null, exp.Boolean,
        exp.Paren, exp.Tuple, exp.Not, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.IntDiv, exp.DPipe,
        exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Is, exp.In, exp.Between, exp.Like, exp.ILike, exp.Glob,
        exp.Escape, exp.RegexpLike, exp.RegexpILike, exp.SimilarTo, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Any, exp.All,
        exp.Window, exp.WindowSpec, exp.Filter, exp.WithinGroup, exp.Var, exp.DataType, exp.DataTypeParam,
        exp.Interval, exp.IntervalSpan, exp.AtTimeZone, exp.Values, exp.Lateral, exp.Rollup, exp.Cube,
        exp.GroupingSets, exp.BitwiseAnd, exp.BitwiseOr, exp.IgnoreNulls, exp.JSONPath, exp.JSONPathRoot,
        exp.JSONPathKey, exp.JSONPathSubscript, exp.Collate,
    }
)  # fmt: skip

FUNCTIONS: frozenset[type[exp.Expr]] = frozenset(
    {
        exp.And, exp.Or, exp.Xor, exp.Case, exp.If, exp.Coalesce, exp.Nullif, exp.Greatest, exp.Least, exp.Exists,
        exp.Cast, exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Stddev, exp.StddevPop, exp.StddevSamp,
        exp.Variance, exp.VariancePop, exp.Corr, exp.PercentileCont, exp.PercentileDisc, exp.Median, exp.Mode,
        exp.GroupConcat, exp.ArrayAgg, exp.LogicalAnd, exp.LogicalOr, exp.RowNumber, exp.Rank, exp.DenseRank,
        exp.PercentRank, exp.CumeDist, exp.Ntile, exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue,
        exp.Abs, exp.Ceil, exp.Floor, exp.Round, exp.Sign, exp.Sqrt, exp.Pow, exp.Exp, exp.Ln, exp.Log, exp.Trunc,
        exp.Lower, exp.Upper, exp.Initcap, exp.Length, exp.Substring, exp.Trim, exp.Replace, exp.Concat, exp.ConcatWs,
        exp.StrPosition, exp.Left, exp.Right, exp.Reverse, exp.SplitPart, exp.Ascii, exp.RegexpReplace,
        exp.Extract, exp.DateTrunc, exp.TimestampTrunc, exp.CurrentDate, exp.CurrentTimestamp, exp.Date, exp.Time,
        exp.Datetime, exp.TimeToStr, exp.TsOrDsToTimestamp, exp.TsOrDsToDate, exp.ToChar, exp.StrToDate, exp.StrToTime,
        exp.DateFromParts, exp.UnixToTime, exp.JSONExtract, exp.JSONExtractScalar, exp.Round, exp.Typeof,
    }
)  # fmt: skip

_BOTH = frozenset({"total", "instr", "julianday", "strpos", "position", "age", "date_part", "to_date", "now"})
NAMED_FUNCTIONS = {
    Dialect.SQLITE: _BOTH | {"unixepoch", "ltrim", "rtrim", "iif", "ifnull", "unicode", "mod", "typeof"},
    Dialect.POSTGRES: _BOTH
    | {
        "char_length", "octet_length", "btrim", "ltrim", "rtrim", "every", "make_date", "to_number", "width_bucket",
        "regr_slope", "regr_intercept", "covar_pop", "covar_samp", "cbrt", "div", "mod",
    },
}  # fmt: skip
"""Functions that the parser does not know, by name."""

TYPES = frozenset(
    getattr(exp.DataType.Type, name)
    for name in (
        "CHAR", "VARCHAR", "TEXT", "NCHAR", "NVARCHAR", "NAME", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE",
        "DECIMAL", "BOOLEAN", "DATE", "TIME", "TIMETZ", "TIMESTAMP", "TIMESTAMPTZ", "DATETIME", "INTERVAL", "UUID",
    )
)  # fmt: skip
"""Types that a value may be cast to: a cast to `regclass` or to a type of the database's own runs code and reads its catalog."""

SQLITE_FUNCTIONS = frozenset(
    {
        "abs", "avg", "ceil", "ceiling", "char", "coalesce", "concat", "concat_ws", "count", "cume_dist",
        "current_date", "current_time", "current_timestamp", "date", "datetime", "dense_rank", "exp", "first_value",
        "floor", "format", "glob", "group_concat", "string_agg", "hex", "ifnull", "iif", "instr", "json_extract", "->",
        "->>", "julianday", "lag", "last_value", "lead", "length", "like", "ln", "log", "log10", "log2", "lower",
        "ltrim", "max", "min", "mod", "nth_value", "ntile", "nullif", "percent_rank", "pow", "power", "rank", "replace",
        "round", "row_number", "rtrim", "sign", "sqrt", "strftime", "substr", "substring", "sum", "time", "total",
        "trim", "trunc", "typeof", "unicode", "unixepoch", "upper", "regexp",
    }
)  # fmt: skip
"""What SQLite itself lets a statement call."""
