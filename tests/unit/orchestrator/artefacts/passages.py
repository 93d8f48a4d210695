"""Passages that quizzes and drawings are made from."""

from services.orchestrator.log.events import Evidence

TOWER = (
    "The tower was built in 1889 by Gustave Eiffel for the world exhibition in Paris. "
    "The tower has a height of 324 metres without the antennas on its top platform."
)
BRIDGE = (
    "The harbour bridge was opened in 1932 by Jack Lang after eight years of work in Sydney. "
    "The harbour bridge has a span of 503 metres between the two towers of granite."
)
DAM = (
    "The great dam was finished in 1936 by Frank Crowe two years ahead of the plan in Nevada. "
    "The great dam has a height of 221 metres above the bed of the river below."
)
CANAL = (
    "The long canal was opened in 1914 by George Goethals when the locks were ready in Panama. "
    "The long canal has a length of 82 kilometres from the one ocean to the other."
)
ROWS = "Region: North; Revenue 2022: 512; Revenue 2023: 530\nRegion: South; Revenue 2022: 208; Revenue 2023: 190"


def passage(number: int, text: str, *headings: str, document: str = "") -> Evidence:
    name = document or f"d{number}"
    return Evidence(number, f"c{number}", name, f"{name}.txt", text, page=number, heading_path=headings)


BUILDINGS = tuple(passage(number, text) for number, text in enumerate((TOWER, BRIDGE, DAM, CANAL), start=1))
