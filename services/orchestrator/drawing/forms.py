"""What can be drawn, and which of it a message asks for."""

import re
from enum import StrEnum

from kit.language.terms import tokens, words


class Form(StrEnum):
    """A way to draw something."""

    FLOW = "flow"
    SEQUENCE = "sequence"
    MIND_MAP = "mind_map"
    CLASS = "class"
    STATE = "state"
    TIMELINE = "timeline"
    LINE = "line"
    BAR = "bar"
    RADAR = "radar"
    TABLE = "table"
    SIDE_BY_SIDE = "side_by_side"
    OUTLINE = "outline"
    """What is shown of a thing that cannot be drawn."""


DIAGRAMS = (Form.FLOW, Form.SEQUENCE, Form.MIND_MAP, Form.CLASS, Form.STATE)
CHARTS = (Form.LINE, Form.BAR, Form.RADAR)

_ASKED = {
    Form.SIDE_BY_SIDE: r"side[\s-]by[\s-]side|nebeneinander|côte à côte|lado a lado|fianco a fianco|рядом|并排",
    Form.SEQUENCE: r"sequence\s*(?:diagram|chart)?|sequenzdiagramm|diagramme de séquence|diagrama de secuencia|时序图",
    Form.MIND_MAP: (
        r"mind[\s-]*map|gedankenkarte|carte (?:mentale|heuristique)|mapa mental|mappa mentale|интеллект-?карт\w*|思维导图"
    ),
    Form.CLASS: r"class\s*diagram|klassendiagramm|diagramme de classes?|diagrama de clases|类图",
    Form.STATE: r"state\s*(?:diagram|machine|chart)|zustandsdiagramm|diagramme d'états?|diagrama de estados?|状态图",
    Form.FLOW: (
        r"flow[\s-]*(?:chart|diagram)?|process (?:diagram|chart|map)|ablaufdiagramm|flussdiagramm|prozess|organigramme|"
        r"diagrama de flujo|diagramma di flusso|блок-схем\w*|流程图"
    ),
    Form.TIMELINE: (
        r"time[\s-]*line|chronolog\w*|zeit(?:leiste|strahl|achse)|frise|línea de tiempo|cronología|linea del tempo|"
        r"хронолог\w*|时间线|年表"
    ),
    Form.RADAR: r"radar|spider\s*(?:chart|web)|netzdiagramm|радар\w*|雷达图",
    Form.LINE: (
        r"line\s*(?:chart|graph|plot)|linien?diagramm|kurve|trend|over time|courbe|gráfico de líneas|grafico a linee|"
        r"линейн\w* график\w*|折线图"
    ),
    Form.BAR: (
        r"bar\s*(?:chart|graph|plot)|column chart|histogram|balkendiagramm|säulendiagramm|chart|plot|graph\b|diagramm\b|"
        r"graphique|histogramme|gráfico|grafico|график\w*|柱状图|图表"
    ),
    Form.TABLE: (r"table|tabular|matrix|tabelle|tableau|tabla|tabella|таблиц\w*|compar\w*|vergleich\w*|表格|对比"),
}


_ASKING_WORDS = frozenset(
    words(
        "draw make create show plot visualise visualize give sketch turn put please me us it this that as into all whole over time "
        "diagram diagrams drawing picture document documents file files text content report again mach mache erstelle zeichne "
        "zeige bitte dokument dokumente bericht diagramm dessine montre fais diagramme haz dibuja muestra documento documentos "
        "diagrama нарисуй построй сделай покажи документ документа документу диаграмму схему צייר הכן הראה מסמך המסמך תרשים"
    )
)
"""Words that ask for a drawing, and say nothing of what it shows."""


def has_topic(message: str) -> bool:
    """Whether the message says what is to be drawn, besides the form."""
    rest = re.sub("|".join(_ASKED.values()), " ", message, flags=re.IGNORECASE)
    return any(token.surface.lower() not in _ASKING_WORDS for token in tokens(rest) if not token.is_stopword)


def read_form(message: str) -> Form | None:
    """The form that the message names; None where it leaves that open."""
    for form, pattern in _ASKED.items():
        if re.search(rf"(?:\b|(?<=\W)|^)(?:{pattern})", message, re.IGNORECASE):
            return form
    return None
