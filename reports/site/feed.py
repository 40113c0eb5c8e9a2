"""What changed, for readers that poll: a JSON feed and an RSS feed of the same items."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from email.utils import format_datetime
from xml.etree.ElementTree import Element, SubElement, indent, tostring

_NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")  # characters that no XML may have

TITLE = "shareproof: verdicts that changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One run. ``address`` is relative to the site, ``when`` is ISO 8601."""

    address: str
    title: str
    text: str
    when: str


def json_feed(items: Sequence[Item]) -> str:
    """Return a JSON feed (https://www.jsonfeed.org/version/1.1/)."""
    document = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": TITLE,
        "items": [
            {
                "id": item.address,
                "url": item.address,
                "title": item.title,
                "content_text": item.text,
                "date_published": item.when,
            }
            for item in items
        ],
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def rss(items: Sequence[Item]) -> str:
    root = Element("rss", version="2.0")
    channel = SubElement(root, "channel")
    for name, text in (("title", TITLE), ("link", "index.html"), ("description", TITLE)):
        SubElement(channel, name).text = text
    for item in items:
        entry = SubElement(channel, "item")
        when = format_datetime(datetime.fromisoformat(item.when))
        fields = {
            "title": item.title,
            "link": item.address,
            "description": item.text,
            "pubDate": when,
        }
        for name, text in fields.items():
            SubElement(entry, name).text = text
        SubElement(entry, "guid", isPermaLink="false").text = item.address
    indent(root)
    return _NO_XML.sub("\ufffd", tostring(root, encoding="unicode", xml_declaration=True)) + "\n"
