"""Exact arithmetic: a model is bad at it. The expression is parsed and walked, never executed as code.

Bounds, so that no expression takes noticeable time or memory: length, nesting, and the size of every intermediate integer,
checked before the operation where the result could be large (`9**9**9`, `factorial(10**6)`).
"""

import ast
import math
import operator
import statistics
from collections.abc import Callable
from typing import Any

from services.tools.errors import ToolError
from services.tools.models import Policy, WithoutModel

EXPRESSION_CHARACTERS_MAX = 1000
NESTING_MAX = 60
INTEGER_BITS_MAX = 4096
"""1233 digits: more than a person reads, and still multiplied within a microsecond."""
FACTORIAL_MAX = 500
"""500! has 3768 bits."""
DIGITS_MAX = 100
EXACT_INTEGER_MAX = 2**53
"""The largest integer up to which JSON's numbers are exact."""

SCHEMA = {
    "type": "function",
    "function": {
        "name": "math_eval",
        "description": (
            "Evaluates an arithmetic expression exactly. Knows + - * / // % **, parentheses, pi, e, tau, and functions such as "
            "sqrt, log, sin, round, floor, ceil, min, max, sum, mean, median, factorial, comb, gcd."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "expression": {
                    "type": "string",
                    "description": "For example (1250 * 1.19) / 12, or mean([3, 4, 8]).",
                    "minLength": 1,
                    "maxLength": EXPRESSION_CHARACTERS_MAX,
                }
            },
            "required": ["expression"],
            "additionalProperties": False,
        },
    },
}
CACHEABLE = True
POLICY = Policy(
    self_contained=True,
    timeout_s=2.0,
    worth=6,
    called_for_by=(
        r"\d\s*(?:\*\*|[-+*/×÷^·])\s*\(?\s*\d",
        r"\d\s*%|\bper ?cent",
        r"\b(?:times|plus|minus|divided by|multipl\w+|mal|geteilt|fois|veces|volte|vezes|keer|razy)\b",
        r"умнож|плюс|минус|разделить|乘以|かける|곱하기",
        r"\b(?:calculat|comput|average|square root|sum of|add up)",
        r"berechn|\brechne|wie ?viel (?:ist|sind|macht)|prozent|wurzel|durchschnitt|\bsumme",
        r"combien font|calcul|pour ?cent|racine|moyenne",
        r"cu[aá]nto (?:es|son)|por ciento|ra[ií]z cuadrada|promedio",
        r"quanto (?:fa|é)|calcola|per ?cento|radice",
        r"oblicz|ile to|procent|bereken|hoeveel is",
        r"сколько будет|вычисли|посчитай|процент|скільки буде|обчисли|відсот",
        r"hesapla|kaç eder|yüzde",
        r"计算|等于|百分|計算|いくつ|パーセント|계산|퍼센트|احسب",
    ),
    without_model=WithoutModel("math", "expression", "do sums"),
)

Number = int | float


class MathError(ToolError):
    """The expression cannot be evaluated."""

    reason = "MATH_ERROR"


def math_eval(expression: str) -> dict[str, Any]:
    """`result` as text, exact for integers; `value` as a number, where JSON holds it exactly or it is a float."""
    try:
        value = _finite(_evaluate(_parse(expression), 0))
    except RecursionError as error:  # while quoting what is wrong with a deep expression
        raise MathError(f"the expression is nested more than {NESTING_MAX} deep; split it") from error
    answer: dict[str, Any] = {"expression": expression, "result": str(value)}
    if isinstance(value, float) or abs(value) <= EXACT_INTEGER_MAX:
        answer["value"] = value
    return answer


def _parse(expression: str) -> ast.expr:
    try:
        return ast.parse(expression.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise MathError(f"this is not an arithmetic expression: {expression[:100]!r}") from error


def _evaluate(node: ast.expr, depth: int) -> Any:
    if depth > NESTING_MAX:
        raise MathError(f"the expression is nested more than {NESTING_MAX} deep; split it")
    evaluate = _NODES.get(type(node))
    if evaluate is None:
        raise MathError(
            f"{ast.unparse(node)[:60]!r} is not arithmetic; only numbers, operators and known functions are"
        )
    try:
        return _bounded(evaluate(node, depth + 1))
    except ZeroDivisionError as error:
        raise MathError(f"division by zero in {ast.unparse(node)[:60]!r}") from error
    except OverflowError as error:
        raise MathError(f"{ast.unparse(node)[:60]!r} is too large for a floating-point number") from error
    except (TypeError, ValueError, statistics.StatisticsError) as error:
        raise MathError(f"{ast.unparse(node)[:60]!r} cannot be computed: {error}") from error


def _constant(node: Any, _: int) -> Number:
    if type(node.value) not in (int, float):
        raise MathError(f"{node.value!r:.60} is not a number")
    number: Number = node.value
    return number


def _name(node: Any, _: int) -> Number:
    if node.id not in _CONSTANTS:
        raise MathError(f"{node.id!r:.60} is unknown; known are {', '.join([*_CONSTANTS, *_FUNCTIONS])}")
    return _CONSTANTS[node.id]


def _unary(node: Any, depth: int) -> Number:
    operate = _UNARY.get(type(node.op))
    if operate is None:
        raise MathError("only + and - stand before a number")
    result: Number = operate(_number(_evaluate(node.operand, depth)))
    return result


def _binary(node: Any, depth: int) -> Number:
    # A long sum leans to the left, one level a term: it is walked in a loop, so that only real nesting counts as depth.
    spine = [node]
    while isinstance(spine[-1].left, ast.BinOp):
        spine.append(spine[-1].left)
    value = _number(_evaluate(spine[-1].left, depth))
    for operation in reversed(spine):
        operate = _BINARY.get(type(operation.op))
        if operate is None:
            raise MathError("only + - * / // % ** stand between numbers; a power is written 2**10, not 2^10")
        value = _bounded(operate(value, _number(_evaluate(operation.right, depth))))
    return value


def _list(node: Any, depth: int) -> list[Number]:
    return [_number(_evaluate(element, depth)) for element in node.elts]


def _call(node: Any, depth: int) -> Number:
    function = _FUNCTIONS.get(node.func.id) if isinstance(node.func, ast.Name) else None
    if function is None:
        raise MathError(f"{ast.unparse(node.func)[:60]!r} is unknown; known are {', '.join(_FUNCTIONS)}")
    if node.keywords:
        raise MathError("functions take their arguments by position")
    result: Number = function(*(_evaluate(argument, depth) for argument in node.args))
    return result


def _number(value: Any) -> Number:
    if isinstance(value, list):
        raise MathError("a list stands only inside a function, as in sum([1, 2])")
    number: Number = value
    return number


def _bounded(value: Any) -> Any:
    if isinstance(value, complex):
        raise MathError("the result is not a real number")
    if isinstance(value, int) and value.bit_length() > INTEGER_BITS_MAX:
        raise MathError(f"a number has more than {INTEGER_BITS_MAX} bits; use floating-point numbers, or a smaller one")
    return value


def _finite(value: Any) -> Number:
    number = _number(value)
    if isinstance(number, float) and not math.isfinite(number):
        raise MathError("the result is not a finite number")
    return number


def _power(base: Number, exponent: Number) -> Any:
    grows = isinstance(base, int) and isinstance(exponent, int) and exponent > 0 and abs(base) > 1
    if grows and int(base).bit_length() * exponent > 2 * INTEGER_BITS_MAX:  # twice: bit_length() rounds up
        raise MathError("a power is too large; use a floating-point base, as in 2.0**1000")
    return base**exponent


def _factorial(number: int) -> int:
    if number > FACTORIAL_MAX:
        raise MathError(f"factorial works up to {FACTORIAL_MAX}")
    return math.factorial(number)


def _choose(function: Callable[[int, int], int]) -> Callable[[int, int], int]:
    def bounded(n: int, k: int) -> int:
        if n > FACTORIAL_MAX:
            raise MathError(f"comb and perm work up to {FACTORIAL_MAX}")
        return function(n, k)

    return bounded


def _round(number: Number, digits: Number = 0) -> Number:
    if not isinstance(digits, int) or abs(digits) > DIGITS_MAX:
        raise MathError(f"round takes a whole number of digits from -{DIGITS_MAX} to {DIGITS_MAX}")
    return round(number, digits) if digits else round(number)


_NODES: dict[type[ast.expr], Callable[[Any, int], Any]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.UnaryOp: _unary,
    ast.BinOp: _binary,
    ast.Call: _call,
    ast.List: _list,
    ast.Tuple: _list,
}
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {ast.UAdd: operator.pos, ast.USub: operator.neg}
_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _power,
}
_CONSTANTS: dict[str, float] = {"pi": math.pi, "e": math.e, "tau": math.tau}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{
        name: getattr(math, name)
        for name in (
            "sqrt", "cbrt", "exp", "log", "log2", "log10", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh",
            "cosh", "tanh", "degrees", "radians", "floor", "ceil", "trunc", "hypot", "gcd", "lcm", "isqrt", "prod", "fsum",
        )
    },
    **{name: getattr(statistics, name) for name in ("mean", "median", "stdev", "pstdev", "variance")},
    "abs": abs,
    "min": min,
    "max": max,
    "sum": sum,
    "round": _round,
    "pow": _power,
    "factorial": _factorial,
    "comb": _choose(math.comb),
    "perm": _choose(math.perm),
}  # fmt: skip
