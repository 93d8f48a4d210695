"""Exact arithmetic: a model is bad at it. The expression is parsed and walked, never executed as code. Numbers are fractions, so
that 0.1 + 0.2 is 0.3; what has no exact value (a root, a logarithm, pi) is a floating-point number from there on.

Bounds, so that no expression takes noticeable time or memory: length, nesting, and the size of every intermediate integer,
checked before the operation where the result could be large (`9**9**9`, `factorial(10**6)`).
"""

import ast
import math
import operator
import statistics
from collections.abc import Callable, Mapping
from contextlib import suppress
from decimal import Decimal, InvalidOperation, localcontext
from fractions import Fraction
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
EXPONENT_MAX = 400
"""Of a literal: beyond a double's range, and still a small fraction."""
SHOWN_DIGITS = 15
"""Of a result that is not exact: all that a double is sure of."""
DECIMALS_MAX = 30
"""Places behind the point of an exact result; one with more is shown rounded."""

SCHEMA = {
    "type": "function",
    "function": {
        "name": "math_eval",
        "description": (
            "Evaluates an arithmetic expression, and says whether the result is exact. Knows + - * / // % **, parentheses, pi, e, "
            "tau, and functions such as sqrt, log, sin, round, floor, ceil, min, max, sum, mean, median, factorial, comb, gcd."
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

Number = int | Fraction | float


class MathError(ToolError):
    """The expression cannot be evaluated."""

    reason = "MATH_ERROR"


def math_eval(expression: str) -> dict[str, Any]:
    """`result` as text; `exact`, whether that is the very value; `value` as a number, but for integers that JSON does not hold."""
    try:
        value = _finite(_evaluate(_parse(expression), 0))
    except RecursionError as error:  # while quoting what is wrong with a deep expression
        raise MathError(f"the expression is nested more than {NESTING_MAX} deep; split it") from error
    result, is_exact = _shown(value)
    answer: dict[str, Any] = {"expression": expression, "result": result, "exact": is_exact}
    if not isinstance(value, int) or abs(value) <= EXACT_INTEGER_MAX:
        with suppress(OverflowError):
            answer["value"] = value if isinstance(value, int) else float(value)
    return answer


def summarise(content: Mapping[str, Any]) -> str:
    """The sum and its result."""
    return f"{content['expression']} {'=' if content['exact'] else '≈'} {content['result']}"


def _shown(value: Number) -> tuple[str, bool]:
    """A number as text, and whether that is all of it."""
    if isinstance(value, int):
        return str(value), True
    if isinstance(value, Fraction) and (places := _decimal_places(value)) is not None:
        digits = str(abs(value.numerator) * 10**places // value.denominator).rjust(places + 1, "0")
        return f"{'-' if value < 0 else ''}{digits[:-places]}.{digits[-places:]}", True
    return _rounded(value), False


def _decimal_places(value: Fraction) -> int | None:
    """How many places behind the point write the fraction exactly; None where none do, or too many."""
    return next((places for places in range(1, DECIMALS_MAX + 1) if 10**places % value.denominator == 0), None)


def _rounded(value: Fraction | float) -> str:
    with localcontext() as context:
        context.prec = SHOWN_DIGITS
        numerator, denominator = value.as_integer_ratio()
        rounded = Decimal(numerator) / Decimal(denominator)
    text = f"{rounded.normalize():f}" if -6 < rounded.adjusted() < SHOWN_DIGITS else f"{rounded.normalize():e}"
    return "0" if text == "-0" else text


def _parse(expression: str) -> ast.expr:
    """The expression as a tree, whose constants have the value that is written."""
    text = expression.strip()
    try:
        tree = ast.parse(text, mode="eval").body
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, float):
                node.value = _literal(ast.get_source_segment(text, node) or "", node.value)  # type: ignore[assignment]
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise MathError(f"this is not an arithmetic expression: {expression[:100]!r}") from error
    return tree


def _literal(written: str, value: float) -> Number:
    try:
        exact = Decimal(written.replace("_", ""))
    except InvalidOperation:
        return value
    return _plain(Fraction(exact)) if abs(exact.adjusted()) <= EXPONENT_MAX else value


def _plain(value: Any) -> Any:
    """A fraction without a denominator as the integer that it is."""
    return value.numerator if isinstance(value, Fraction) and value.denominator == 1 else value


def _evaluate(node: ast.expr, depth: int) -> Any:
    if depth > NESTING_MAX:
        raise MathError(f"the expression is nested more than {NESTING_MAX} deep; split it")
    evaluate = _NODES.get(type(node))
    if evaluate is None:
        raise MathError(
            f"{ast.unparse(node)[:60]!r} is not arithmetic; only numbers, operators and known functions are"
        )
    try:
        return _bounded(_plain(evaluate(node, depth + 1)))
    except ZeroDivisionError as error:
        raise MathError(f"division by zero in {ast.unparse(node)[:60]!r}") from error
    except OverflowError as error:
        raise MathError(f"{ast.unparse(node)[:60]!r} is too large for a floating-point number") from error
    except (TypeError, ValueError, statistics.StatisticsError) as error:
        raise MathError(f"{ast.unparse(node)[:60]!r} cannot be computed: {error}") from error


def _constant(node: Any, _: int) -> Number:
    if type(node.value) not in (int, float, Fraction):
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
        value = _bounded(_plain(operate(value, _number(_evaluate(operation.right, depth)))))
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
    if isinstance(value, Fraction) and _bits(value) > INTEGER_BITS_MAX:
        return float(value)
    if isinstance(value, int) and value.bit_length() > INTEGER_BITS_MAX:
        raise MathError(f"a number has more than {INTEGER_BITS_MAX} bits; use floating-point numbers, or a smaller one")
    return value


def _finite(value: Any) -> Number:
    number = _number(value)
    if isinstance(number, float) and not math.isfinite(number):
        raise MathError("the result is not a finite number")
    return number


def _bits(value: int | Fraction) -> int:
    return max(abs(value.numerator).bit_length(), value.denominator.bit_length())


def _power(base: Number, exponent: Number) -> Any:
    if isinstance(base, float) or not isinstance(exponent, int):
        return float(base) ** float(exponent)
    if _bits(base) * abs(exponent) > 2 * INTEGER_BITS_MAX and abs(base) not in (0, 1):  # twice: bit_length() rounds up
        if isinstance(base, int):
            raise MathError("a power is too large; use exp and log, as in exp(1000 * log(2))")
        return float(base) ** exponent
    return Fraction(base) ** exponent


def _divide(dividend: Number, divisor: Number) -> Any:
    if isinstance(dividend, float) or isinstance(divisor, float):
        return dividend / divisor
    return Fraction(dividend) / Fraction(divisor)


def _of_fractions(function: Callable[[list[Any]], Any]) -> Callable[[list[Number]], Number]:
    """A function of a list, over fractions where it would make floats of integers."""

    def exact(numbers: list[Number]) -> Number:
        result: Number = function([Fraction(each) if isinstance(each, int) else each for each in numbers])
        return result

    return exact


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
    exact: Any = number
    rounded: Number = round(exact, digits) if digits else round(exact)
    return rounded


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
    ast.Div: _divide,
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
    **{name: _of_fractions(getattr(statistics, name)) for name in ("mean", "median", "stdev", "pstdev", "variance")},
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
