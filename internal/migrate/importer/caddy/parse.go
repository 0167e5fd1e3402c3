package caddy

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"headgate/internal/migrate/importer"
)

// directive is a line of a Caddyfile with the block that it opens, if any.
type directive struct {
	importer.Origin
	words []string // the name first
	block []*directive
	open  bool // it has a block
	// of is the directive that a part of one is reported as; nil for a whole one.
	of *directive
}

// name is the first word, empty for what has none.
func (d *directive) name() string {
	if len(d.words) == 0 {
		return ""
	}
	return d.words[0]
}

// arg returns an argument by its place, empty if there is none.
func (d *directive) arg(i int) string {
	if i+1 < len(d.words) {
		return d.words[i+1]
	}
	return ""
}

func (d *directive) args() []string { return d.words[min(1, len(d.words)):] }

// token is a word of a Caddyfile.
type token struct {
	text   string
	line   int
	quoted bool
	first  bool // it is the first word of its line
}

// The bounds of what is read.
const (
	maxTokens   = 500_000
	maxDepth    = 32
	maxIncludes = 200
	maxExpanded = 200_000
)

// tokens cuts a Caddyfile into words: quoted with " or `, heredocs, comments left out.
func tokens(file string, data []byte) ([]token, error) {
	var out []token
	text, line, first := string(fromEnvironment(data)), 1, true
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case c == '\n':
			line, first = line+1, true
			i++
			continue
		case c == ' ' || c == '\t' || c == '\r':
			i++
			continue
		case c == '\\' && i+1 < len(text) && (text[i+1] == '\n' || strings.HasPrefix(text[i+1:], "\r\n")):
			i += 1 + strings.IndexByte(text[i:], '\n') // the line goes on
			line++
			continue
		case c == '#':
			if n := strings.IndexByte(text[i:], '\n'); n >= 0 {
				i += n
				continue
			}
			i = len(text)
			continue
		}
		if len(out) >= maxTokens {
			return nil, fmt.Errorf("%s:%d: more than %d words", file, line, maxTokens)
		}
		t := token{line: line, first: first}
		first = false
		var n int
		var err error
		switch {
		case c == '"' || c == '`':
			t.quoted = true
			t.text, n, err = quoted(text[i:])
		case strings.HasPrefix(text[i:], "<<") && len(text) > i+2 && text[i+2] != ' ' && text[i+2] != '\n':
			t.quoted = true
			t.text, n, err = heredoc(text[i:])
		default:
			n = strings.IndexAny(text[i:], " \t\r\n")
			if n < 0 {
				n = len(text) - i
			}
			t.text = strings.ReplaceAll(text[i:i+n], `\"`, `"`)
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, line, err)
		}
		line += strings.Count(text[i:i+n], "\n")
		i += n
		out = append(out, t)
	}
	return out, nil
}

// quoted reads a quoted text and says how long it is with its quotes.
func quoted(text string) (string, int, error) {
	quote := text[0]
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == quote:
			return b.String(), i + 1, nil
		case text[i] == '\\' && quote == '"' && i+1 < len(text) && text[i+1] == '"':
			b.WriteByte('"')
			i++
		default:
			b.WriteByte(text[i])
		}
	}
	return "", 0, fmt.Errorf("a text is not closed by %c", quote)
}

// heredoc reads <<MARK to the line that holds MARK alone.
func heredoc(text string) (string, int, error) {
	head, rest, ok := strings.Cut(text, "\n")
	mark := strings.TrimSpace(strings.TrimPrefix(head, "<<"))
	if !ok || mark == "" {
		return "", 0, fmt.Errorf("%s is not closed", strings.TrimSpace(head))
	}
	at := len(head) + 1
	var lines []string
	for line := range strings.Lines(rest) {
		trimmed := strings.TrimSpace(line)
		if after, ok := strings.CutPrefix(trimmed, mark); ok && (after == "" || strings.HasPrefix(after, " ")) {
			indent := strings.Index(line, mark)
			for i, l := range lines { // the closing mark's indentation is not part of the text
				lines[i] = strings.TrimPrefix(l, line[:indent])
			}
			return strings.Join(lines, "\n"), at + indent + len(mark), nil
		}
		lines = append(lines, strings.TrimRight(line, "\r\n"))
		at += len(line)
	}
	return "", 0, fmt.Errorf("<<%s is not closed", mark)
}

// reader makes directives of files: imports of files and snippets are put in.
type reader struct {
	read     func(string) ([]byte, error)
	glob     func(string) ([]string, error)
	files    []string
	snippets map[string]*directive
	unknown  []*directive // imports of what is not there
	includes int
	expanded int // directives that imports have put in
}

// place is where a list of directives is.
type place uint8

const (
	outermost place = iota // of a file: global options, snippets and sites
	inside                 // of a block, whose files have directives alone
)

// file reads the directives of a file that is imported at a place.
func (r *reader) file(name string, at place, depth int) ([]*directive, error) {
	if r.includes++; r.includes > maxIncludes || depth > maxDepth {
		return nil, fmt.Errorf("%s: files import each other without end, or more than %d files", name, maxIncludes)
	}
	data, err := r.read(name)
	if err != nil {
		return nil, err
	}
	if strings.IndexByte(string(data), 0) >= 0 {
		return nil, fmt.Errorf("%s: not a text", name)
	}
	r.files = append(r.files, name)
	all, err := tokens(name, data)
	if err != nil {
		return nil, err
	}
	p := &parser{file: name, tokens: all, at: at}
	return p.list(0)
}

// parser makes directives of words.
type parser struct {
	file   string
	tokens []token
	next   int
	at     place
	// bare says that the file is one site without braces, whose block ends with the file.
	bare bool
}

// list reads directives up to the end of their block.
func (p *parser) list(depth int) ([]*directive, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("%s:%d: nested too deep", p.file, p.tokens[min(p.next, len(p.tokens)-1)].line)
	}
	var out []*directive
	for p.next < len(p.tokens) {
		t := p.tokens[p.next]
		if t.text == "}" && !t.quoted {
			if depth == 0 || depth == 1 && p.bare {
				return nil, fmt.Errorf("%s:%d: a } closes nothing", p.file, t.line)
			}
			p.next++
			return out, nil
		}
		d, err := p.directive(depth)
		if err != nil {
			return nil, err
		}
		if out = append(out, d); depth == 0 && p.isBare(d) {
			p.bare = true
			d.open = true
			if d.block, err = p.list(1); err != nil {
				return nil, err
			}
		}
	}
	if depth > 0 && !(depth == 1 && p.bare) {
		return nil, fmt.Errorf("%s: a { is not closed", p.file)
	}
	return out, nil
}

// isBare reports whether a line of the outermost level has the addresses of a site
// without braces: everything that follows belongs to that site.
func (p *parser) isBare(d *directive) bool {
	return p.at == outermost && !d.open && d.name() != "" && d.name() != "import"
}

// directive reads one line, and its block. On the outermost level a comma goes on to
// the next line: those are addresses.
func (p *parser) directive(depth int) (*directive, error) {
	d := &directive{Origin: importer.Origin{File: p.file, Line: p.tokens[p.next].line}}
	for p.next < len(p.tokens) {
		t := p.tokens[p.next]
		goesOn := depth == 0 && p.at == outermost && len(d.words) > 0 && strings.HasSuffix(d.words[len(d.words)-1], ",")
		if t.first && len(d.words) > 0 && !goesOn && (t.text != "{" || depth > 0) {
			break
		}
		if t.text == "}" && !t.quoted {
			break
		}
		p.next++
		if t.text == "{" && !t.quoted {
			d.open = true
			var err error
			if d.block, err = p.list(depth + 1); err != nil {
				return nil, err
			}
			break
		}
		d.words = append(d.words, t.text)
	}
	if len(d.words) == 0 {
		d.words = []string{""} // the global options
	}
	return d, nil
}

// expand puts in what a list imports: snippets with their arguments, and files.
func (r *reader) expand(list []*directive, at place, depth int) ([]*directive, error) {
	if len(list) == 0 {
		return nil, nil
	}
	if depth > maxDepth {
		return nil, fmt.Errorf("%s:%d: imports lead in a circle, or more than "+strconv.Itoa(maxDepth)+" deep", list[0].File, list[0].Line)
	}
	var out []*directive
	for _, d := range list {
		if d.name() != "import" {
			var err error
			if d.block, err = r.expand(d.block, inside, depth+1); err != nil {
				return nil, err
			}
			out = append(out, d)
			continue
		}
		found, err := r.imported(d, at, depth)
		if err != nil {
			return nil, err
		}
		if r.expanded += 1 + len(found); r.expanded > maxExpanded {
			return nil, fmt.Errorf("%s:%d: imports put in more than %d lines", d.File, d.Line, maxExpanded)
		}
		if found, err = r.expand(found, at, depth+1); err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// imported returns what an import puts in: a snippet, or the files that it names.
func (r *reader) imported(d *directive, at place, depth int) ([]*directive, error) {
	d.Skip()
	args := d.args()[min(1, len(d.args())):]
	if s := r.snippets[d.arg(0)]; s != nil {
		return r.filled(s.block, args, d.block)
	}
	pattern := d.arg(0)
	if pattern == "" {
		return nil, nil
	}
	if !filepath.IsAbs(pattern) {
		pattern = filepath.Join(filepath.Dir(d.File), pattern)
	}
	names, err := r.glob(pattern)
	if err != nil && !errors.Is(err, filepath.ErrBadPattern) {
		return nil, fmt.Errorf("%s:%d: import %s: %v", d.File, d.Line, d.arg(0), err)
	}
	if len(names) == 0 {
		d.Reopen()
		r.unknown = append(r.unknown, d)
		return nil, nil
	}
	slices.Sort(names)
	var out []*directive
	for _, name := range names {
		list, err := r.file(name, at, depth+1)
		if err != nil {
			return nil, err
		}
		r.define(list)
		if list, err = r.filled(slices.DeleteFunc(list, isSnippet), args, d.block); err != nil {
			return nil, err
		}
		out = append(out, list...)
	}
	return out, nil
}

func isSnippet(d *directive) bool {
	return strings.HasPrefix(d.name(), "(") && strings.HasSuffix(d.name(), ")")
}

// define remembers the snippets of a list.
func (r *reader) define(list []*directive) {
	for _, d := range list {
		if isSnippet(d) {
			d.Skip()
			r.snippets[strings.Trim(d.name(), "()")] = d
		}
	}
}

// filled copies what is imported, with {args[0]}, {args.0} and {args[1:]} replaced by the
// arguments of the import, and {block} and {blocks.name} by what its block has.
func (r *reader) filled(list []*directive, args []string, block []*directive) ([]*directive, error) {
	var pairs []string
	for i, a := range args {
		pairs = append(pairs, fmt.Sprintf("{args[%d]}", i), a, fmt.Sprintf("{args.%d}", i), a)
	}
	f := &filling{r: r, args: args, one: strings.NewReplacer(pairs...), block: block}
	return f.list(list)
}

// filling is one import that is put in.
type filling struct {
	r     *reader
	args  []string
	one   *strings.Replacer
	block []*directive
}

func (f *filling) list(list []*directive) (out []*directive, err error) {
	for _, d := range list {
		if f.r.expanded++; f.r.expanded > maxExpanded {
			return nil, fmt.Errorf("%s:%d: imports put in more than %d lines", d.File, d.Line, maxExpanded)
		}
		if put, ok := f.blocks(d); ok {
			f.r.expanded += len(put)
			out = append(out, put...)
			continue
		}
		c := &directive{Origin: importer.Origin{File: d.File, Line: d.Line}, open: d.open}
		for _, w := range d.words {
			if from, ok := f.several(w); ok {
				c.words = append(c.words, from...)
			} else {
				c.words = append(c.words, f.one.Replace(w))
			}
		}
		if c.block, err = f.list(d.block); err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// blocks returns what {block} or {blocks.name} is replaced by.
func (f *filling) blocks(d *directive) ([]*directive, bool) {
	if len(d.words) != 1 || d.open {
		return nil, false
	}
	if d.words[0] == "{block}" {
		return copied(f.block), true
	}
	name, ok := strings.CutPrefix(d.words[0], "{blocks.")
	if !ok {
		return nil, false
	}
	for _, b := range f.block {
		if b.name() == strings.TrimSuffix(name, "}") {
			b.Skip()
			return copied(b.block), true
		}
	}
	return nil, true
}

// copied returns directives that can be translated besides the given ones.
func copied(list []*directive) (out []*directive) {
	for _, d := range list {
		out = append(out, &directive{Origin: importer.Origin{File: d.File, Line: d.Line}, words: d.words, open: d.open, block: copied(d.block)})
	}
	return out
}

// several returns the arguments that {args[from:to]} names.
func (f *filling) several(word string) ([]string, bool) {
	inner, ok := strings.CutPrefix(word, "{args[")
	inner, closed := strings.CutSuffix(inner, "]}")
	first, last, colon := strings.Cut(inner, ":")
	if !ok || !closed || !colon {
		return nil, false
	}
	from, to := 0, len(f.args)
	if n, err := strconv.Atoi(first); err == nil {
		from = n
	}
	if n, err := strconv.Atoi(last); err == nil {
		to = n
	}
	to = min(max(to, 0), len(f.args))
	return f.args[min(max(from, 0), to):to], true
}
