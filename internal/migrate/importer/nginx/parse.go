package nginx

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"headgate/internal/migrate/importer"
)

// The bounds of what is read.
const (
	maxFileSize   = 16 << 20
	maxFiles      = 2000
	maxDepth      = 64
	maxDirectives = 500_000
)

// directive is one directive with its position. A block has directives of its own.
type directive struct {
	importer.Origin
	name  string
	args  []string
	block []*directive
	is    bool // a block, also without directives

	byName map[string][]*directive // of large blocks, made when it is needed
}

// left reports whether a block was not translated.
func (d *directive) left() bool { return d.is && (!d.Settled() || d.Verdict() == importer.Impossible) }

// Text returns the directive as it was written, without its block.
func (d *directive) Text() string {
	words := append([]string{d.name}, d.args...)
	for i, w := range words {
		if w == "" || strings.ContainsAny(w, " \t;{}") {
			words[i] = `"` + w + `"`
		}
	}
	if d.is {
		return strings.Join(words, " ") + " { … }"
	}
	return strings.Join(words, " ") + ";"
}

// arg returns an argument, "" if there are fewer.
func (d *directive) arg(i int) string {
	if i >= 0 && i < len(d.args) {
		return d.args[i]
	}
	return ""
}

// indexed is from how many directives on a block is looked up by names.
const indexed = 16

// find returns the directives of a block with one of the names, in their order.
func (d *directive) find(names ...string) (out []*directive) {
	if len(names) == 1 && len(d.block) > indexed {
		if d.byName == nil {
			d.byName = map[string][]*directive{}
			for _, c := range d.block {
				d.byName[c.name] = append(d.byName[c.name], c)
			}
		}
		return d.byName[names[0]]
	}
	if len(d.block) > indexed { // mostly there is none of them
		if found := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return len(d.find(n)) == 0 }); len(found) < 2 {
			if len(found) == 0 {
				return nil
			}
			return d.find(found[0])
		}
	}
	for _, c := range d.block {
		if slices.Contains(names, c.name) {
			out = append(out, c)
		}
	}
	return out
}

// reader reads files and what they include.
type reader struct {
	read    func(name string) ([]byte, error)
	glob    func(pattern string) ([]string, error)
	root    string // base of relative includes
	files   []string
	missing []*directive // include of files that are not there
	open    []string     // that are being read, for includes in a circle
	count   int
}

// syntaxError is a mistake in the source.
func syntaxError(file string, line int, format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s", file, line, fmt.Sprintf(format, args...))
}

// file reads one file.
func (r *reader) file(name string) ([]*directive, error) {
	if slices.Contains(r.open, name) {
		return nil, fmt.Errorf("%s: it includes itself", name)
	}
	if len(r.files) >= maxFiles {
		return nil, fmt.Errorf("%s: more than %d files are included", name, maxFiles)
	}
	data, err := r.read(name)
	if err != nil {
		return nil, err
	}
	if len(data) > maxFileSize {
		return nil, fmt.Errorf("%s: larger than %d bytes", name, maxFileSize)
	}
	if i := slices.Index(data, 0); i >= 0 {
		return nil, fmt.Errorf("%s: not a text", name)
	}
	r.files = append(r.files, name)
	r.open = append(r.open, name)
	defer func() { r.open = r.open[:len(r.open)-1] }()
	l := &lexer{file: name, text: string(data), line: 1}
	out, err := r.block(l, 0, false)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// dump reads what `nginx -T` prints: all files one after the other, each below a line
// that names it.
func dump(data []byte) map[string][]byte {
	const mark = "# configuration file "
	files := map[string][]byte{}
	name := ""
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, mark); ok {
			name = strings.TrimSuffix(strings.TrimSpace(rest), ":")
			files[name] = []byte{}
			continue
		}
		if name != "" {
			files[name] = append(files[name], line...)
		}
	}
	return files
}

// block reads directives up to the end of a block or of the file.
func (r *reader) block(l *lexer, depth int, inside bool) (out []*directive, err error) {
	if depth > maxDepth {
		return nil, syntaxError(l.file, l.line, "blocks are nested more than %d deep", maxDepth)
	}
	for {
		words, line, end, err := l.directive()
		if err != nil {
			return nil, err
		}
		switch {
		case end == endOfFile && inside:
			return nil, syntaxError(l.file, l.line, "the file ends inside of a block; a } is missing")
		case end == endOfFile:
			return out, nil
		case end == '}' && !inside:
			return nil, syntaxError(l.file, line, "a } without a {")
		case end == '}':
			return out, nil
		}
		if r.count++; r.count > maxDirectives {
			return nil, syntaxError(l.file, line, "more than %d directives", maxDirectives)
		}
		d := &directive{Origin: importer.Origin{File: l.file, Line: line}, name: words[0], args: words[1:]}
		switch {
		case end == '{' && strings.HasSuffix(d.name, "_by_lua_block"):
			d.is = true
			if err := l.skipBlock(); err != nil {
				return nil, err
			}
		case end == '{':
			d.is = true
			if d.block, err = r.block(l, depth+1, true); err != nil {
				return nil, err
			}
		case d.name == "include":
			included, err := r.include(d)
			if err != nil {
				return nil, err
			}
			out = append(append(out, d), included...)
			continue
		}
		out = append(out, d)
	}
}

// include reads the files that a directive names. A pattern may match none.
func (r *reader) include(d *directive) (out []*directive, err error) {
	name := d.arg(0)
	if !path.IsAbs(filepath.ToSlash(name)) {
		name = filepath.Join(r.root, name)
	}
	if path.Base(name) == "mime.types" {
		return nil, nil // types are set by the servers
	}
	names := []string{name}
	if strings.ContainsAny(name, "*?[") {
		if names, err = r.glob(name); err != nil {
			return nil, syntaxError(d.File, d.Line, "include %s: %v", d.arg(0), err)
		}
	}
	for _, n := range names {
		more, err := r.file(n)
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				r.missing = append(r.missing, d)
				continue
			}
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}

const endOfFile = -1

// lexer reads the words of directives.
type lexer struct {
	file, text string
	at, line   int
}

// directive reads words up to ;, { or }, or the end of the file.
func (l *lexer) directive() (words []string, line, end int, err error) {
	for {
		l.blanks()
		if l.at >= len(l.text) {
			if len(words) > 0 {
				return nil, line, 0, syntaxError(l.file, line, "the file ends in the directive %s; a ; is missing", words[0])
			}
			return nil, l.line, endOfFile, nil
		}
		c := l.text[l.at]
		switch {
		case c == '}' && len(words) == 0:
			l.at++
			return nil, l.line, '}', nil
		case c == '}':
			return nil, line, 0, syntaxError(l.file, line, "the directive %s ends with a }; a ; is missing", words[0])
		case c == ';' || c == '{':
			l.at++
			if len(words) == 0 {
				return nil, l.line, 0, syntaxError(l.file, l.line, "a %c without a directive", c)
			}
			return words, line, int(c), nil
		}
		if len(words) == 0 {
			line = l.line
		}
		w, err := l.word()
		if err != nil {
			return nil, line, 0, err
		}
		words = append(words, w)
	}
}

// blanks passes over space and comments.
func (l *lexer) blanks() {
	for l.at < len(l.text) {
		switch c := l.text[l.at]; c {
		case '\n':
			l.line++
			l.at++
		case ' ', '\t', '\r':
			l.at++
		case '#':
			for l.at < len(l.text) && l.text[l.at] != '\n' {
				l.at++
			}
		default:
			return
		}
	}
}

// word reads one word, in quotes or not.
func (l *lexer) word() (string, error) {
	begin := l.line
	if q := l.text[l.at]; q == '"' || q == '\'' {
		var b strings.Builder
		for l.at++; l.at < len(l.text); l.at++ {
			switch c := l.text[l.at]; {
			case c == q:
				l.at++
				return b.String(), nil
			case c == '\\' && l.at+1 < len(l.text):
				l.at++
				switch e := l.text[l.at]; e {
				case q, '\\':
					b.WriteByte(e)
				case 'n':
					b.WriteByte('\n')
				case 't':
					b.WriteByte('\t')
				case 'r':
					b.WriteByte('\r')
				default:
					b.WriteByte('\\')
					b.WriteByte(e)
				}
			default:
				if c == '\n' {
					l.line++
				}
				b.WriteByte(c)
			}
		}
		return "", syntaxError(l.file, begin, "a quote is not closed")
	}
	start := l.at
	for ; l.at < len(l.text); l.at++ {
		switch c := l.text[l.at]; {
		case c == '\\' && l.at+1 < len(l.text):
			l.at++
		case c == '$' && strings.HasPrefix(l.text[l.at:], "${"):
			if end := strings.IndexByte(l.text[l.at:], '}'); end > 0 {
				l.at += end
			}
		case c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == ';' || c == '{':
			return l.text[start:l.at], nil
		}
	}
	return l.text[start:], nil
}

// skipBlock passes over a block of Lua, whose braces are balanced outside of strings
// and comments.
func (l *lexer) skipBlock() error {
	begin := l.line
	for depth := 1; l.at < len(l.text); l.at++ {
		switch c := l.text[l.at]; {
		case c == '\n':
			l.line++
		case c == '{':
			depth++
		case c == '}':
			if depth--; depth == 0 {
				l.at++
				return nil
			}
		case c == '"' || c == '\'':
			l.skipString(c)
		case strings.HasPrefix(l.text[l.at:], "--"):
			for l.at+1 < len(l.text) && l.text[l.at+1] != '\n' {
				l.at++
			}
		}
	}
	return syntaxError(l.file, begin, "the block is not closed")
}

// skipString passes over a string, up to its last quote.
func (l *lexer) skipString(quote byte) {
	for l.at++; l.at < len(l.text) && l.text[l.at] != quote; l.at++ {
		switch l.text[l.at] {
		case '\\':
			l.at++
		case '\n':
			l.line++
		}
	}
}
