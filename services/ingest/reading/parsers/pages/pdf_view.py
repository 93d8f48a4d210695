"""From PDF coordinates to the page as a reader sees it."""

from dataclasses import dataclass
from typing import Any

from services.ingest.reading.geometry import Box


@dataclass(frozen=True)
class PageView:
    """A page's visible part. Points from its top left, after the rotation that the page asks for."""

    left: float
    bottom: float
    right: float
    top: float
    rotation: int
    """Degrees clockwise: 0, 90, 180 or 270."""

    @classmethod
    def of(cls, page: Any) -> "PageView":
        """Of a PDFium page."""
        left, bottom, right, top = page.get_cropbox()
        return cls(min(left, right), min(bottom, top), max(left, right), max(bottom, top), page.get_rotation() % 360)

    @property
    def area(self) -> float:
        """Square points."""
        return (self.right - self.left) * (self.top - self.bottom)

    def point(self, x: float, y: float) -> tuple[float, float]:
        match self.rotation:
            case 90:
                return y - self.bottom, x - self.left
            case 180:
                return self.right - x, y - self.bottom
            case 270:
                return self.top - y, self.right - x
            case _:
                return x - self.left, self.top - y

    def box(self, left: float, bottom: float, right: float, top: float) -> Box:
        (x0, y0), (x1, y1) = self.point(left, top), self.point(right, bottom)
        return min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)
