package haproxy

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"headgate/internal/migrate/importer"
)

// The bounds of what is read.
const (
	maxFileSize = 16 << 20
	maxFiles    = 2000
	maxLines    = 500_000
	maxWords    = 1000
	maxNested   = 16
)

// directive is one line of the source.
type directive struct {
	importer.Origin
	words []string // the name first
}

func (d *directive) name() string { return d.words[0] }

// arg returns a word behind the name, "" if there are fewer.
func (d *directive) arg(i int) string {
	if i+1 < len(d.words) {
		return d.words[i+1]
	}
	return ""
}

// after returns the word that follows another one, "" if that is not there.
func (d *directive) after(word string) string {
	if i := slices.Index(d.words, word); i > 0 && i+1 < len(d.words) {
		return d.words[i+1]
	}
	return ""
}

func (d *directive) has(word string) bool { return slices.Index(d.words, word) > 0 }

// secretBehind are words in front of a password.
var secretBehind = []string{"password", "insecure-password", "auth"}

// Text is the line without what is secret.
func (d *directive) Text() string {
	words := slices.Clone(d.words)
	for i := range words {
		if i > 0 && slices.Contains(secretBehind, words[i-1]) && (d.name() == "user" || d.name() == "stats") {
			words[i] = "…"
		} else if words[i] == "" || strings.ContainsAny(words[i], " \t#\"'") {
			words[i] = `"` + words[i] + `"`
		}
	}
	return strings.Join(words, " ")
}

// section is a section with its lines.
type section struct {
	d        *directive
	kind     string
	name     string
	lines    []*directive
	defaults *section // whose settings hold where the section has none
}

// find returns the lines of a name that hold in the section: its own, else those of
// its defaults.
func (s *section) find(names ...string) []*directive {
	if s == nil {
		return nil
	}
	if own := s.own(names...); len(own) > 0 {
		return own
	}
	return s.defaults.find(names...)
}

// rules returns the lines of rules that apply in the section, in the order of
// evaluation: those of its defaults come first, and its own do not replace them.
func (s *section) rules(names ...string) []*directive {
	if s == nil {
		return nil
	}
	return append(s.defaults.rules(names...), s.own(names...)...)
}

// own returns the section's own lines of a name, which may have two words.
func (s *section) own(names ...string) (out []*directive) {
	for _, d := range s.lines {
		for _, name := range names {
			first, second, two := strings.Cut(name, " ")
			if d.name() == first && (!two || d.arg(0) == second) {
				out = append(out, d)
			}
		}
	}
	return out
}

// sectionNames start a section.
var sectionNames = []string{"global", "defaults", "frontend", "backend", "listen", "userlist", "peers", "resolvers", "mailers", "cache", "program", "ring",
	"http-errors", "fcgi-app", "log-forward", "crt-store", "traces"}

// reader reads the lines of files.
type reader struct {
	read  func(name string) ([]byte, error)
	glob  func(pattern string) ([]string, error)
	files []string
	count int
	vars  map[string]string // of setenv and presetenv
	all   []*directive
}

// path reads a file, or the files of a folder that end with .cfg, as HAProxy does.
func (r *reader) path(name string) error {
	names, err := r.glob(filepath.Join(name, "*.cfg"))
	if err != nil || len(names) == 0 {
		return r.file(name)
	}
	slices.Sort(names)
	for _, n := range names {
		if err := r.file(n); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) file(name string) error {
	if len(r.files) >= maxFiles {
		return fmt.Errorf("%s: more than %d files", name, maxFiles)
	}
	data, err := r.read(name)
	if err != nil {
		return err
	}
	if slices.Contains(data, 0) {
		return fmt.Errorf("%s: not a text", name)
	}
	r.files = append(r.files, name)
	line := 0
	for text := range strings.Lines(string(data)) {
		line++
		if r.count++; r.count > maxLines {
			return fmt.Errorf("%s:%d: more than %d lines", name, line, maxLines)
		}
		words, what := r.words(strings.TrimRight(text, "\r\n"))
		if what != "" {
			return fmt.Errorf("%s:%d: %s", name, line, what)
		}
		if len(words) == 0 {
			continue
		}
		d := &directive{Origin: importer.Origin{File: name, Line: line}, words: words}
		r.all = append(r.all, d)
		if (d.name() == "setenv" || d.name() == "presetenv") && len(words) == 3 {
			if _, there := r.vars[d.arg(0)]; !there || d.name() == "setenv" {
				r.vars[d.arg(0)] = d.arg(1)
			}
		}
	}
	return nil
}

// words splits a line: quotes, escapes, comments. Variables are replaced within
// double quotes.
func (r *reader) words(text string) (words []string, what string) {
	var b strings.Builder
	open := false // a word has begun
	end := func() {
		if open {
			words = append(words, b.String())
			b.Reset()
			open = false
		}
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case ' ', '\t':
			end()
		case '#':
			end()
			i = len(text)
		case '\\':
			open = true
			i += escape(&b, text[i:])
		case '\'':
			open = true
			n := strings.IndexByte(text[i+1:], '\'')
			if n < 0 {
				return nil, "a quote is not closed"
			}
			b.WriteString(text[i+1 : i+1+n])
			i += n + 1
		case '"':
			open = true
			n, what := r.weak(&b, text[i+1:])
			if what != "" {
				return nil, what
			}
			i += n
		default:
			open = true
			b.WriteByte(c)
		}
		if len(words) > maxWords {
			return nil, fmt.Sprintf("more than %d words", maxWords)
		}
	}
	end()
	return words, ""
}

// escape writes the meaning of a backslash and what follows, and returns how many bytes
// follow. A backslash stays where it has no meaning, such as in front of a group's number.
func escape(b *strings.Builder, text string) (n int) {
	if len(text) < 2 {
		return 0
	}
	switch c := text[1]; c {
	case 'n', 'r', 't':
		b.WriteByte(map[byte]byte{'n': '\n', 'r': '\r', 't': '\t'}[c])
	case 'x':
		v, err := strconv.ParseUint(text[min(2, len(text)):min(4, len(text))], 16, 8)
		if err != nil || v == 0 {
			b.WriteString(`\x`)
			return 1
		}
		b.WriteByte(byte(v))
		return 3
	case ' ', '#', '\\', '"', '\'':
		b.WriteByte(c)
	default:
		b.WriteByte('\\')
		b.WriteByte(c)
	}
	return 1
}

// weak reads text in double quotes, and returns its length with the end quote.
func (r *reader) weak(b *strings.Builder, text string) (n int, what string) {
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			return i + 1, ""
		case c == '\\' && i+1 < len(text):
			i++
			if !strings.ContainsRune("\\\"$ #'", rune(text[i])) {
				b.WriteByte('\\')
			}
			b.WriteByte(text[i])
		case c == '$':
			value, used := r.variable(text[i:])
			b.WriteString(value)
			i += used - 1
		default:
			b.WriteByte(c)
		}
	}
	return 0, "a quote is not closed"
}

// number is a number or a time.
var number = regexp.MustCompile(`^[0-9]+(us|ms|s|m|h|d)?$`)

// variable returns the value of $NAME or ${NAME-text}. What the source does not set
// itself stays as ${NAME}, which headgate reads from its environment.
func (r *reader) variable(text string) (value string, used int) {
	n := 1
	braced := strings.HasPrefix(text, "${")
	if braced {
		n = 2
	}
	begin := n
	for n < len(text) && (text[n] == '_' || '0' <= text[n] && text[n] <= '9' || 'a' <= text[n] && text[n] <= 'z' || 'A' <= text[n] && text[n] <= 'Z') {
		n++
	}
	name, otherwise, end := text[begin:n], "", n
	if braced {
		closing := strings.IndexByte(text[n:], '}')
		if closing < 0 {
			return text[:n], n
		}
		otherwise, end = strings.TrimPrefix(text[n:n+closing], "-"), n+closing+1
	}
	v, ok := r.vars[name]
	switch {
	case name == "":
		return text[:end], end
	case ok:
		return v, end
	case number.MatchString(otherwise): // a field that wants a time or a number has no variables
		return otherwise, end
	case otherwise != "":
		return "${" + name + ":-" + otherwise + "}", end
	}
	return "${" + name + "}", end
}
