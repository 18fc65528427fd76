"""What a program may print to make a terminal obey it, and how it is shown."""

#: By a name: the text, and its escaped form.
ATTACKS = {
    "clear": ("\x1b[2J", "\\u001b[2J"),
    "conceal": ("\x1b[8m", "\\u001b[8m"),
    "title": ("\x1b]0;root\x07", "\\u001b]0;root\\u0007"),
    "link": ("\x1b]8;;http://h\x1b\\", "\\u001b]8;;http://h\\u001b\\"),
    "clipboard": ("\x1b]52;c;eA==\x07", "\\u001b]52;c;eA==\\u0007"),
    "bell": ("\a\b\f\v", "\\u0007\\u0008\\u000c\\u000b"),
    "return": ("FAILED\rfine", "FAILED\\u000dfine"),
    "c1": ("\x9b2J\x7f\x85", "\\u009b2J\\u007f\\u0085"),
    "override": ("\u202egpj.exe", "\\u202egpj.exe"),
    "isolate": ("\u2066\u2069\u200f\u061c", "\\u2066\\u2069\\u200f\\u061c"),
    "separator": ("\u2028\u2029", "\\u2028\\u2029"),
    "half": ("\ud83d", "\\ud83d"),
}
