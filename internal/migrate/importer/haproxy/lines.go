package haproxy

import (
	"slices"
	"strings"

	"headgate/internal/migrate/importer"
)

// ruled is what is known of a line that acts on requests: a rule, or one that sends
// requests to a backend. What it becomes is known when all routes are made.
type ruled struct {
	notes []string
	field importer.Field // of the routes on which it acts
	acted bool           // some route is made with it
	left  bool           // a route on which it acts was left out
	kept  bool           // a route on which it acts is in the document
	lost  bool           // its section listens nowhere, and a line to look at says so
}

// ruled returns what is known of a line; the first call makes it the line of a rule.
func (t *translator) ruled(d *directive, notes ...string) *ruled {
	r := t.lines[d]
	if r == nil {
		r = &ruled{}
		t.lines[d] = r
		t.order = append(t.order, d)
	}
	for _, n := range notes {
		if n != "" && !slices.Contains(r.notes, n) {
			r.notes = append(r.notes, n)
		}
	}
	return r
}

// sayRules adds verdicts to the lines of rules. A line that acts on no route comes after
// others that decide about all of its requests.
func (t *translator) sayRules() {
	for _, d := range t.order {
		switch r := t.lines[d]; {
		case r.left && !r.kept:
			t.AddVerdict(d, importer.Impossible, "%s", strings.Join(r.notes, "; "))
		case r.acted:
			note := strings.Join(r.notes, "; ")
			t.Became(d, verdictOf(note), r.field, "%s", note)
		case r.lost:
			t.AddVerdict(d, importer.Impossible, "its section listens nowhere")
		default:
			t.AddVerdict(d, importer.Ignored, "no request gets to it: other lines decide before")
		}
	}
	for name, b := range t.made {
		if s := t.backends[name]; s.kind == "backend" && !b.reached {
			for _, d := range append([]*directive{s.d}, s.lines...) {
				if v := d.Verdict(); v == importer.Same || v == importer.Close {
					t.Amend(d, importer.Ignored, "no request gets to this backend")
				}
			}
		}
	}
}

// uses records that a line is used by another one, as an ACL or a variable is.
func (t *translator) uses(asked, by *directive) { t.askers[asked] = append(t.askers[asked], by) }

// sayAsked adds the verdict to a line that acts through those that use it.
func (t *translator) sayAsked(d *directive, notes ...string) {
	note, impossible := strings.Join(notes, "; "), false
	for _, by := range t.askers[d] {
		switch by.Verdict() {
		case importer.Same, importer.Close:
			t.Became(d, verdictOf(note), through(t.askers[d]), "%s", note)
			return
		case importer.Impossible:
			impossible = true
		}
	}
	if impossible {
		t.AddVerdict(d, importer.Impossible, "the lines that use it cannot be translated")
		return
	}
	t.AddVerdict(d, importer.Ignored, "no line that acts on requests uses it")
}

// through is the field of what acts through lines.
func through(lines []*directive) importer.Field { return importer.Through(lines...) }

// saySettings gives a section that only holds settings of others its verdict.
func (t *translator) saySettings(s *section, note string) {
	for _, d := range s.lines {
		if v := d.Verdict(); v == importer.Same || v == importer.Close {
			t.Became(s.d, importer.Same, importer.Through(s.lines...), "%s", note)
			return
		}
	}
	t.AddVerdict(s.d, importer.Ignored, "none of its lines is a setting of headgate")
}
