"""How well a thing on a page stands out from its ground, as WCAG 2 counts it: 1 (not at all) to 21."""

from __future__ import annotations

from playwright.sync_api import Locator

TEXT = 4.5
GRAPHICS = 3.0

_CONTRAST = """(nodes, of) => {
    const colour = (text) => {
        const [r, g, b, alpha = 1] = text.match(/[\\d.]+/g).map(Number);
        return { rgb: [r, g, b], alpha };
    };
    const over = (top, ground) => top.rgb.map((c, k) => c * top.alpha + ground[k] * (1 - top.alpha));
    const ground = (node) => {
        if (!node) return [255, 255, 255];
        const own = colour(getComputedStyle(node).backgroundColor);
        return own.alpha === 1 ? own.rgb : over(own, ground(node.parentElement));
    };
    const luminance = (rgb) => {
        const linear = (c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
        const [r, g, b] = rgb.map((c) => linear(c / 255));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const ratio = (a, b) => {
        const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
        return (high + 0.05) / (low + 0.05);
    };
    const shadow = (style) => style.boxShadow.match(/rgba?\\([^)]*\\)/)[0];
    const drawn = {
        text: (style) => style.color,
        fill: (style) => style.fill,
        border: (style) => style.borderTopColor,
        ring: shadow,
    }[of];
    const speaks = (node) => [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
    return nodes.filter((node) => node.checkVisibility() && (of !== 'text' || speaks(node))).map((node) => {
        const around = ground(of === 'text' ? node : node.parentElement);
        return [node.textContent, ratio(over(colour(drawn(getComputedStyle(node))), around), around)];
    });
}"""


def contrasts(things: Locator, of: str = "text") -> list[tuple[str, float]]:
    """(text, contrast) of each thing that is seen: of its text on its own ground, or of its fill (the text of
    a drawing), its border or its ring (a shadow) on the ground around it. Without text of its own, a thing
    has none to tell.
    """
    return [(text, ratio) for text, ratio in things.evaluate_all(_CONTRAST, of)]
