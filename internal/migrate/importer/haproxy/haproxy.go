// Package haproxy reads configurations of HAProxy and writes what headgate makes of
// them: a document, and a report in which every line has a verdict. Import is the way.
//
// parse.go reads the text. condition.go makes conditions of ACLs, fetch.go translates samples.
// HAProxy evaluates a list of rules in order; headgate uses the route with the longest path and
// the most matchers: importer/rules makes routes of the rules with the same result. frontend.go
// collects the rules of a frontend, chain.go evaluates them with those of its backends, action.go,
// rewrite.go and header.go contain their actions, outcome.go the result for a request, servers.go,
// server.go and health.go the servers, stream.go mode tcp, tables.go the lines that are
// independent of others.
//
// It never applies anything, and opens no file but those that it is given, and the
// maps, lists and pages that those name. It does not look at the environment.
package haproxy

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"headgate/internal/migrate/importer"
	"headgate/internal/setting/unit"
)

// Import reads configurations, or folders of them, in the order of names. The error has
// the place of what cannot be read: nothing is written then.
func Import(names []string, files importer.Files) ([]byte, *importer.Report, error) {
	files = files.Bounded(maxFileSize, "more than a configuration has")
	r := &reader{read: files.Read, glob: files.Glob, vars: map[string]string{}}
	for _, name := range names {
		if err := r.path(name); err != nil {
			return nil, nil, err
		}
	}
	t := &translator{Translation: importer.NewTranslation("HAProxy"), read: files.Read, glob: files.Glob, backends: map[string]*section{}, users: map[string]*section{},
		portNames: map[string]string{}, made: map[string]*backend{}, lines: map[*directive]*ruled{}, askers: map[*directive][]*directive{}, acl: map[*directive][]string{}, cookies: map[string]*section{}}
	if err := t.sections(r.all); err != nil {
		return nil, nil, err
	}
	if len(t.fronts) == 0 {
		return nil, nil, fmt.Errorf("%s: there is no frontend and no listen in it, so it is not a whole configuration of HAProxy", strings.Join(names, ", "))
	}
	for _, s := range t.fronts {
		t.front(s)
	}
	t.sendToHTTPS()
	t.rest(r.all)
	return t.Finish("a configuration of HAProxy", "line", r.files)
}

// translator goes through one configuration.
type translator struct {
	*importer.Translation
	read      func(string) ([]byte, error)
	glob      func(string) ([]string, error)
	all       []*section
	fronts    []*section          // frontend and listen, in order
	backends  map[string]*section // backend and listen, by name
	bound     unit.AddressRange   // the ports of the section in mode tcp that is translated, if it has one address
	users     map[string]*section
	portNames map[string]string   // by address and protocol
	made      map[string]*backend // by name
	plain     []*front            // that only send clients to https
	written   []written
	lines     map[*directive]*ruled       // of the rules
	order     []*directive                // of lines
	askers    map[*directive][]*directive // the lines that use an ACL, a variable or a backend
	acl       map[*directive][]string     // the notes of ACLs
	cookies   map[string]*section         // whose sticky cookie has a name
	home      string                      // default-path, the base of relative names
	crtBase   string                      // crt-base, the base of names of certificates
	caBase    string                      // ca-base
}

// sections sorts lines into their sections. Lines of unused branches have their
// verdict after this.
func (t *translator) sections(all []*directive) error {
	var now, defaults *section
	named := map[string]*section{}
	var branches []branch
	for _, d := range all {
		taken, is, err := t.branch(d, &branches)
		if err != nil {
			return err
		}
		if is {
			continue
		}
		if !taken {
			t.AddVerdict(d, importer.Ignored, "in a branch that is not used")
			continue
		}
		if slices.Contains(sectionNames, d.name()) {
			now = &section{d: d, kind: d.name(), name: d.arg(0), defaults: defaults}
			if from := d.after("from"); from != "" {
				now.defaults = named[from]
			}
			t.startSection(now, named, &defaults)
			continue
		}
		if now == nil {
			return fmt.Errorf("%s:%d: %s is outside of a section; is this a configuration of HAProxy?", d.File, d.Line, d.name())
		}
		now.lines = append(now.lines, d)
		if now.kind == "global" {
			t.global(d)
		}
	}
	if len(branches) > 0 {
		return fmt.Errorf("%s:%d: .if without .endif", branches[0].d.File, branches[0].d.Line)
	}
	return nil
}

// startSection starts a section.
func (t *translator) startSection(s *section, named map[string]*section, defaults **section) {
	t.all = append(t.all, s)
	switch s.kind {
	case "defaults":
		if s.d.after("from") == "" {
			s.defaults = nil
		}
		*defaults = s
		if s.name != "" && s.name != "from" {
			named[s.name] = s
		}
	case "frontend":
		t.fronts = append(t.fronts, s)
	case "listen":
		t.fronts = append(t.fronts, s)
		t.backends[s.name] = s
	case "backend":
		t.backends[s.name] = s
	case "userlist":
		t.users[s.name] = s
	}
}

// global reads the base of relative names.
func (t *translator) global(d *directive) {
	switch {
	case d.name() == "default-path" && d.arg(0) == "origin":
		t.home = d.arg(1)
	case d.name() == "crt-base":
		t.crtBase = d.arg(0)
	case d.name() == "ca-base":
		t.caBase = d.arg(0)
	}
}

// branch is an .if that is open.
type branch struct {
	d     *directive
	taken bool // the lines that follow
	done  bool // one of its branches was used
}

// branch handles .if, .elif, .else and .endif, and reports whether d is one of them and
// whether the lines are used. A condition that is no constant counts as fulfilled.
func (t *translator) branch(d *directive, open *[]branch) (taken, is bool, err error) {
	taken = !slices.ContainsFunc(*open, func(b branch) bool { return !b.taken })
	name := d.name()
	if !strings.HasPrefix(name, ".") {
		return taken, false, nil
	}
	last := len(*open) - 1
	if name != ".if" && last < 0 && slices.Contains([]string{".elif", ".else", ".endif"}, name) {
		return false, true, fmt.Errorf("%s:%d: %s without .if", d.File, d.Line, name)
	}
	switch name {
	case ".if":
		if len(*open) >= maxNested {
			return false, true, fmt.Errorf("%s:%d: .if is nested more than %d deep", d.File, d.Line, maxNested)
		}
		holds := taken && t.holds(d)
		*open = append(*open, branch{d: d, taken: holds, done: holds})
	case ".elif":
		holds := !(*open)[last].done && t.holds(d)
		(*open)[last].taken, (*open)[last].done = holds, (*open)[last].done || holds
	case ".else":
		(*open)[last].taken, (*open)[last].done = !(*open)[last].done, true
		t.AddVerdict(d, importer.Ignored, decidedHere)
	case ".endif":
		*open = (*open)[:last]
		t.AddVerdict(d, importer.Ignored, decidedHere)
	default: // .notice, .warning, .alert, .diag
		t.AddVerdict(d, importer.Ignored, "a message of HAProxy at its start")
	}
	return taken, true, nil
}

// decidedHere is the note of lines that choose among others.
const decidedHere = "decided while it is imported"

// holds decides a condition of .if and .elif.
func (t *translator) holds(d *directive) bool {
	text := strings.Join(d.words[1:], " ")
	switch text {
	case "", "0", "false", "no", "off":
		t.AddVerdict(d, importer.Ignored, decidedHere)
		return false
	case "1", "true", "yes", "on":
		t.AddVerdict(d, importer.Ignored, decidedHere)
		return true
	}
	t.AddVerdict(d, importer.Ignored, "the condition is not evaluated here: it counts as fulfilled, and its .elif and .else as unused")
	t.Check("%s:%d: %s counts as fulfilled; import once more with the branch that you want written out, if it is another", d.File, d.Line, d.Text())
	return true
}

// rest adds a verdict to all lines without one.
func (t *translator) rest(all []*directive) {
	t.sayRules()
	for _, s := range t.all {
		for _, d := range s.lines {
			if notes, ok := t.acl[d]; ok {
				t.sayAsked(d, notes...)
			} else if strings.HasPrefix(d.arg(0), "set-var(") || strings.HasPrefix(d.arg(0), "set-var-fmt(") {
				t.sayAsked(d)
			}
		}
	}
	for _, s := range t.all {
		note, whole := wholeSections[s.kind]
		if s.kind == "backend" && !s.d.Settled() {
			t.AddVerdict(s.d, importer.Ignored, "no rule sends requests to it")
			note, whole = "no rule sends requests to this backend", true
		}
		for _, d := range append([]*directive{s.d}, s.lines...) {
			if whole && !d.Settled() {
				t.AddVerdict(d, importer.Ignored, note)
			}
		}
	}
	for _, d := range all {
		if d.Settled() || d.name() == "global" || d.name() == "defaults" || d.name() == "userlist" {
			continue
		}
		for n := min(3, len(d.words)); n > 0 && !d.Settled(); n-- {
			t.SayKnown(d, table, tableName(d.words[:n]))
		}
		if d.name() == "tcp-request" && (d.has("reject") || d.has("silent-drop")) && d.Verdict() != importer.Ignored && !d.has("track-sc0") {
			t.Check("%s:%d: %s was left out: what it protects is open; ip_filter says who is let in", d.File, d.Line, d.Text())
		}
		t.AddVerdict(d, importer.Impossible, "headgate does not know this line here")
	}
	for _, s := range t.all {
		switch s.kind {
		case "global":
			t.saySettings(s, "")
		case "defaults":
			t.saySettings(s, "its settings hold where a section has none of its own")
		case "userlist":
			t.saySettings(s, "its users are those of basic_auth where http-request auth names it")
		}
	}
}

// tableName is the name of a line in the table: without what is in parentheses, and
// without the name of a function.
func tableName(words []string) string {
	words = slices.Clone(words)
	for i, w := range words {
		words[i], _, _ = strings.Cut(w, "(")
		if strings.HasPrefix(w, "lua.") {
			words[i] = "lua"
		}
	}
	return strings.Join(words, "_")
}

// path is a name of the source relative to the base of its names.
func (t *translator) path(d *directive, name string) string {
	switch {
	case filepath.IsAbs(name):
		return name
	case t.home != "":
		return filepath.Join(t.home, name)
	}
	return filepath.Join(filepath.Dir(d.File), name)
}

// pathIn is like path for names with a directory that the source sets for them.
func (t *translator) pathIn(base string, d *directive, name string) string {
	if base == "" || filepath.IsAbs(name) {
		return t.path(d, name)
	}
	return t.path(d, filepath.Join(base, name))
}

// entries are the lines of a list or map, without comments.
func (t *translator) entries(d *directive, name string) (lines [][]string, err error) {
	return t.entriesUpTo(maxEntries, d, name)
}

// entriesUpTo is entries with another bound.
func (t *translator) entriesUpTo(bound int, d *directive, name string) (lines [][]string, err error) {
	data, err := t.read(t.path(d, name))
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if len(lines) >= bound {
			return nil, fmt.Errorf("%s: more than %d entries", name, bound)
		}
		key, value, _ := strings.Cut(strings.ReplaceAll(line, "\t", " "), " ")
		lines = append(lines, []string{key, strings.TrimSpace(value)})
	}
	return lines, nil
}

// maxEntries bounds a list or map that routes are made of.
const maxEntries = 2000

// maxAddresses bounds a list of addresses, which no route is made of.
const maxAddresses = 100_000
