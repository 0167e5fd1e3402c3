package document

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"

	"headgate/internal/schema"
	"headgate/internal/setting/unit"
)

// Bounds of a file. They hold before anything is understood of it.
const (
	// MaxSize is the largest file that is read.
	MaxSize = 8 * unit.MiB
	// maxDepth limits how deep lists and mappings are nested.
	maxDepth = 64
	// maxParts limits the lines and commas of a file, an estimate of its values before it
	// is parsed.
	maxParts = 1_000_000
	// maxNodes limits the values of a file after every alias is replaced.
	maxNodes = 2_000_000
)

// Quoted are the styles in which a scalar is text, whatever it holds.
const Quoted = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle

// Tree reads a file into its tree, comments aside.
func Tree(name string, data []byte) (*yaml.Node, *schema.Problem) {
	if p := checkBytes(name, data); p != nil {
		return nil, p
	}
	if root := parseQuick(data); root != nil {
		return root, nil
	}
	doc, p := Parse(name, data)
	if p != nil {
		return nil, p
	}
	return doc.Content[0], nil
}

// Parse reads a file into its document node, whose one child is the tree. The
// tree is within every bound; nil, with a problem, otherwise.
func Parse(name string, data []byte) (*yaml.Node, *schema.Problem) {
	if p := checkBytes(name, data); p != nil {
		return nil, p
	}
	doc, p := parseTree(name, data)
	if p != nil {
		return nil, p
	}
	m := measure{}
	if n, what := m.walk(doc.Content[0], 0); what != "" {
		return nil, &schema.Problem{File: name, Line: n.Line, Column: n.Column, What: what,
			Remedy: "write the values out, or split the file"}
	}
	return doc, nil
}

// checkSize rejects what is too large to be a configuration.
func checkSize(name, data string) *schema.Problem {
	if len(data) > int(MaxSize) {
		return &schema.Problem{File: name, What: fmt.Sprintf("the file has %d bytes, more than the maximum of %v", len(data), MaxSize),
			Remedy: "name the configuration file, not another one"}
	}
	if n := strings.Count(data, "\n") + strings.Count(data, ","); n > maxParts {
		return &schema.Problem{File: name, What: fmt.Sprintf("the file has %d lines and commas, more than the maximum of %d", n, maxParts),
			Remedy: "name the configuration file, not another one"}
	}
	return nil
}

// checkBytes rejects what cannot be a configuration without parsing it.
func checkBytes(name string, data []byte) *schema.Problem {
	if p := checkSize(name, string(data)); p != nil {
		return p
	}
	for i := 0; i < len(data); {
		c := data[i]
		if c >= ' ' && c < 0x7f || c == '\n' || c == '\t' || c == '\r' {
			i++
			continue
		}
		r, size := utf8.DecodeRune(data[i:])
		what := ""
		switch {
		case r == utf8.RuneError && size <= 1:
			what = fmt.Sprintf("byte 0x%02X is not valid UTF-8", c)
		case r < ' ' || r == 0x7f:
			what = fmt.Sprintf("the file contains the control character 0x%02X", c)
		}
		if what != "" {
			line := 1 + bytes.Count(data[:i], []byte("\n"))
			return &schema.Problem{File: name, Line: line, Column: i - bytes.LastIndexByte(data[:i], '\n'),
				What: what, Remedy: "a configuration is a text file in UTF-8"}
		}
		i += size
	}
	return nil
}

// parseTree has the library parse the file. A panic in it is a problem of the
// file like any other.
func parseTree(name string, data []byte) (doc *yaml.Node, p *schema.Problem) {
	defer func() {
		if v := recover(); v != nil {
			doc, p = nil, &schema.Problem{File: name, What: fmt.Sprintf("the file cannot be parsed: %v", v)}
		}
	}()
	limits := loaderlimits.New(loaderlimits.DepthValue(maxDepth), loaderlimits.AliasNone())
	loader, err := yaml.NewLoader(bytes.NewReader(data), yaml.WithPlugin(limits))
	if err != nil {
		return nil, syntaxProblem(name, data, err)
	}
	var first, second yaml.Node
	if err := loader.Load(&first); err == io.EOF {
		return nil, emptyProblem(name)
	} else if err != nil {
		return nil, syntaxProblem(name, data, err)
	}
	if err := loader.Load(&second); err == nil {
		return nil, &schema.Problem{File: name, Line: second.Line, Column: second.Column,
			What: "the file contains more than one document", Remedy: "remove the --- line, or split the file"}
	} else if err != io.EOF {
		return nil, syntaxProblem(name, data, err)
	}
	if first.Kind != yaml.DocumentNode || len(first.Content) != 1 || IsNull(first.Content[0]) {
		return nil, emptyProblem(name)
	}
	return &first, nil
}

func emptyProblem(name string) *schema.Problem {
	return &schema.Problem{File: name, Line: 1, Column: 1, What: "the file is empty", Remedy: `begin with "version: 1"`}
}

// syntaxProblem converts an error of the library into a problem, and rewrites messages that
// operators would not understand.
func syntaxProblem(name string, data []byte, err error) *schema.Problem {
	p := &schema.Problem{File: name, What: strings.TrimPrefix(err.Error(), "yaml: ")}
	var load *yaml.LoadError
	if !errors.As(err, &load) {
		return p
	}
	p.What, p.Line, p.Column = load.Message, load.Mark.Line, max(1, load.Mark.Column)
	began := ""
	if at := load.ContextMark.Line; load.ContextMsg != "" && at > 0 && at != p.Line {
		began = fmt.Sprintf(" that began in line %d", at)
	}
	switch {
	case strings.Contains(p.What, "max depth"):
		p.What, p.Remedy = fmt.Sprintf("lists and mappings are nested more than %d deep", maxDepth), "remove a level"
	case strings.Contains(p.What, "cannot start any token") && tabIndents(data, p.Line):
		p.What, p.Remedy = "the line is indented with a tab", "indent with spaces"
	default:
		p.What, p.Remedy = plainSyntax(load.Message, load.ContextMsg, began)
	}
	return p
}

// plainSyntax rewrites a message of the library without the terms of its grammar, and
// suggests a fix. Context is what was being parsed, began where it began if on another
// line.
func plainSyntax(message, context, began string) (what, remedy string) {
	anchor, isAnchor := strings.CutPrefix(message, "unknown anchor '")
	switch {
	case isAnchor:
		anchor = strings.TrimSuffix(anchor, "' referenced")
		return fmt.Sprintf("*%s refers to an anchor that the file does not have", anchor),
			fmt.Sprintf("put a text that begins with * in quotes: \"*%s\"", anchor)
	case strings.Contains(message, "cannot start any token"):
		return "a text cannot begin with this character", "put the text in quotes"
	case strings.Contains(context, "block mapping"):
		return "the indentation of this line matches no line above, or its key has no colon",
			"indent it like the other keys of the block" + began
	case strings.Contains(context, "block collection"):
		return "this line is no element of its list", "begin it with -, indented like the first element of the list" + began
	case strings.Contains(context, "flow sequence"):
		return "a comma is missing, or the list is not closed", "separate elements with commas, and close the list" + began + " with ]"
	case strings.Contains(context, "flow mapping"):
		return "a comma is missing, or the object is not closed", "separate fields with commas, and close the object" + began + " with }"
	case strings.Contains(context, "flow node"):
		return "a value is missing, or a list or object is not closed", "close what was opened with [ or {" + began
	case strings.Contains(context, "quoted scalar") && strings.Contains(message, "end of stream"):
		return "a quoted text is not closed", "put a quote at the end of the text" + began
	case strings.Contains(message, "mapping values are not allowed"):
		return "unexpected colon",
			"quote text that contains a colon; start a key on a new line, with the same indentation as the other keys"
	case context != "":
		return message, context + began
	}
	return message, ""
}

// tabIndents reports whether the indentation of a line contains a tab.
func tabIndents(data []byte, line int) bool {
	for text := range bytes.Lines(data) {
		if line--; line == 0 {
			return bytes.HasPrefix(bytes.TrimLeft(text, " "), []byte("\t"))
		}
	}
	return false
}

// measure bounds a tree before it is understood.
type measure struct{ nodes int }

// walk counts what is below n, aliases replaced. It returns the node at which a
// bound was passed, and which.
func (m *measure) walk(n *yaml.Node, depth int) (*yaml.Node, string) {
	n = Resolved(n)
	if m.nodes++; m.nodes > maxNodes {
		return n, fmt.Sprintf("the file holds more than %d values, counted with its aliases replaced", maxNodes)
	}
	if depth > maxDepth {
		return n, fmt.Sprintf("lists and mappings are nested more than %d deep, counted with aliases replaced", maxDepth)
	}
	for _, child := range n.Content {
		if at, what := m.walk(child, depth+1); what != "" {
			return at, what
		}
	}
	return nil, ""
}
