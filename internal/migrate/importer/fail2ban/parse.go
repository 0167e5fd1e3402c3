package fail2ban

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"headgate/internal/migrate/importer"
)

// setting is a line of the source with what belongs to it, or the head of a section.
type setting struct {
	importer.Origin
	section, name, value string
	replaced             bool // by a later one
}

// Text is the setting as the report shows it.
func (s *setting) Text() string {
	if s.name == "" {
		return "[" + s.section + "]"
	}
	value, more, several := strings.Cut(s.value, "\n")
	if several && more != "" {
		value += " …"
	}
	if r := []rune(value); len(r) > 100 {
		value = string(r[:100]) + "…"
	}
	return s.name + " = " + value
}

// section is a jail, or what holds for all jails. A section of several files is one.
type section struct {
	name     string
	head     *setting
	settings []*setting
}

// maxSettings bounds the settings of all files.
const maxSettings = 50_000

// file reads a file of jails.
func (t *translator) file(name string) error {
	data, err := t.files.Read(name)
	if err != nil {
		return err
	}
	var now *section
	var last *setting
	line := 0
	for text := range strings.Lines(string(data)) {
		line++
		text = strings.TrimRight(text, "\r\n")
		trimmed := strings.TrimSpace(text)
		switch {
		case trimmed == "":
			last = nil
			continue
		case trimmed[0] == '#' || trimmed[0] == ';':
			continue
		case text[0] == ' ' || text[0] == '\t':
			if last != nil {
				last.value = strings.TrimPrefix(last.value+"\n"+trimmed, "\n")
			}
			continue
		case trimmed[0] == '[':
			end := strings.IndexByte(trimmed, ']')
			if end < 0 {
				return fmt.Errorf("%s:%d: a section without its ]", name, line)
			}
			now, last = t.openSection(strings.TrimSpace(trimmed[1:end]), importer.Origin{File: name, Line: line}), nil
			continue
		}
		i := strings.IndexAny(trimmed, "=:")
		if i <= 0 || now == nil {
			return fmt.Errorf("%s:%d: settings must be in a section, as name = value; is this a file of jails?", name, line)
		}
		last = &setting{Origin: importer.Origin{File: name, Line: line}, section: now.name, name: strings.ToLower(strings.TrimSpace(trimmed[:i])), value: comment.ReplaceAllString(strings.TrimSpace(trimmed[i+1:]), "")}
		if before := now.get(last.name); before != nil {
			before.replaced = true
		}
		now.settings = append(now.settings, last)
		if t.all = append(t.all, last); len(t.all) > maxSettings {
			return fmt.Errorf("%s:%d: more than %d settings", name, line, maxSettings)
		}
	}
	return nil
}

// comment is a remark behind a value.
var comment = regexp.MustCompile(`\s[;#]\s.*$`)

// openSection returns a section, which may have been begun in another file.
func (t *translator) openSection(name string, at importer.Origin) *section {
	s := t.sections[name]
	if s != nil {
		return s
	}
	s = &section{name: name, head: &setting{Origin: at, section: name}}
	t.sections[name] = s
	t.all = append(t.all, s.head)
	switch name {
	case "DEFAULT":
		t.defaults = s
		s.head.Skip()
	case "INCLUDES", "Definition", "Init":
		s.head.Skip()
	default:
		t.order = append(t.order, s)
	}
	return s
}

// get returns the last setting of a name, nil if there is none.
func (s *section) get(name string) (found *setting) {
	if s == nil {
		return nil
	}
	for _, e := range s.settings {
		if e.name == name {
			found = e
		}
	}
	return found
}

// get returns the setting that holds in a jail.
func (t *translator) get(s *section, name string) *setting {
	if e := s.get(name); e != nil {
		return e
	}
	return t.defaults.get(name)
}

var reference = regexp.MustCompile(`%\(([A-Za-z0-9_.]+)\)s`)

// value is a setting's value with those that it refers to.
func (t *translator) value(s *section, e *setting) string { return t.resolve(s, e.value, 0) }

func (t *translator) resolve(s *section, text string, depth int) string {
	if depth > 16 || len(text) > 1<<16 {
		return text
	}
	return reference.ReplaceAllStringFunc(text, func(found string) string {
		name := strings.ToLower(reference.FindStringSubmatch(found)[1])
		if name == "__name__" {
			return s.name
		}
		if e := t.get(s, name); e != nil {
			return t.resolve(s, e.value, depth+1)
		}
		return found
	})
}

// truth reports whether a value says yes.
func truth(value string) bool {
	switch strings.ToLower(value) {
	case "1", "true", "yes", "on":
		return true
	}
	return false
}

var piece = regexp.MustCompile(`(\d+)\s*([a-z]*)`)

// units are the units of times in fail2ban.
var units = map[string]time.Duration{
	"": time.Second, "s": time.Second, "ss": time.Second, "sec": time.Second, "second": time.Second, "seconds": time.Second,
	"m": time.Minute, "mm": time.Minute, "min": time.Minute, "minute": time.Minute, "minutes": time.Minute,
	"h": time.Hour, "hh": time.Hour, "hour": time.Hour, "hours": time.Hour,
	"d": 24 * time.Hour, "dd": 24 * time.Hour, "day": 24 * time.Hour, "days": 24 * time.Hour,
	"w": 168 * time.Hour, "ww": 168 * time.Hour, "week": 168 * time.Hour, "weeks": 168 * time.Hour,
	"mon": 730 * time.Hour, "month": 730 * time.Hour, "months": 730 * time.Hour, "y": 8760 * time.Hour, "year": 8760 * time.Hour, "years": 8760 * time.Hour,
}

// maxTime bounds a time, so that no sum overflows.
const maxTime = 100 * 8760 * time.Hour

// duration reads a time such as 600, 10m or "1d 12h".
func duration(text string) (total time.Duration, ok bool) {
	text = strings.ToLower(strings.TrimSpace(text))
	if text == "" || strings.Trim(piece.ReplaceAllString(text, ""), " ") != "" {
		return 0, false
	}
	for _, p := range piece.FindAllStringSubmatch(text, -1) {
		unit, known := units[p[2]]
		n, err := strconv.ParseInt(p[1], 10, 32)
		if !known || err != nil {
			return 0, false
		}
		if n > int64(maxTime/unit) {
			return maxTime, true
		}
		if total += time.Duration(n) * unit; total > maxTime {
			return maxTime, true
		}
	}
	return total, true
}
