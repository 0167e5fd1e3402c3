// Package format writes the text of a configuration in its canonical form, without a change
// of its meaning.
package format

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"headgate/internal/config/document"
	"headgate/internal/schema"
)

// maxFormatRounds bounds how often a file is written until it no longer moves.
const maxFormatRounds = 4

// Canonical returns a configuration in its canonical form: two blanks to a level,
// the fields of an object in the order of the reference, names in the order of
// the file, {…} and […] only where they are on one line. Comments, single blank
// lines and the quotes of values are kept. In a file with anchors the order of
// fields stays too. What the file means does not
// change, and formatting the result gives the result again.
//
// A file that can be parsed is formatted whether or not it is a good
// configuration. The problems are those of parsing, without a file name; the
// text is nil when there are any.
func Canonical(data []byte, root *schema.Object) ([]byte, []schema.Problem) {
	doc, p := document.Parse("", data)
	if p != nil {
		return nil, []schema.Problem{*p}
	}
	want := commentLines(doc)
	for range maxFormatRounds {
		out, p := formatOnce(doc, data, root)
		if p != nil {
			return nil, []schema.Problem{*p}
		}
		if bytes.Equal(out, data) {
			return out, nil
		}
		data = out
		if doc, p = document.Parse("", data); p != nil {
			return nil, []schema.Problem{unformattable(p.What)}
		}
		if !slices.Equal(commentLines(doc), want) {
			return nil, []schema.Problem{unformattable("a comment would be lost")}
		}
	}
	return nil, []schema.Problem{unformattable("a comment cannot be kept in its place")}
}

// unformattable is the problem of a file that means something and cannot be
// written in its canonical form.
func unformattable(what string) schema.Problem {
	return schema.Problem{What: "the file cannot be formatted: " + what, Remedy: "put comments on separate lines, above the setting that they describe"}
}

// formatOnce writes a document whose text is source.
func formatOnce(doc *yaml.Node, source []byte, described *schema.Object) (out []byte, p *schema.Problem) {
	defer func() {
		if v := recover(); v != nil {
			out, p = nil, &schema.Problem{What: fmt.Sprintf("the file cannot be formatted: %v", v)}
		}
	}()
	root := doc.Content[0]
	blanks := blankLines{lines: bytes.Split(source, []byte("\n"))}
	unfold(root)
	if !hasAnchors(root) {
		order(root, &schema.Type{Kind: schema.Struct, Object: described})
	}
	blanks.collect(root)
	out, err := yaml.Dump(doc, yaml.WithIndent(2), yaml.WithCompactSeqIndent(false), yaml.WithLineWidth(-1), yaml.WithUnicode(true))
	if err != nil {
		problem := unformattable(err.Error())
		return nil, &problem
	}
	written, problem := document.Parse("", out)
	if problem != nil || !sameMeaning(root, written.Content[0]) {
		problem := unformattable("it would mean something else")
		return nil, &problem
	}
	spaced := blanks.insert(out, written.Content[0])
	if again, p := document.Parse("", spaced); p == nil && sameMeaning(written.Content[0], again.Content[0]) && sameComments(written, again) {
		return spaced, nil
	}
	return out, nil
}

// unfold converts objects and lists in flow style that span several lines into block style,
// and removes the quotes from their keys. It returns the last line of n.
func unfold(n *yaml.Node) int {
	last := n.Line
	for _, child := range n.Content {
		last = max(last, unfold(child))
	}
	if n.Style&yaml.FlowStyle == 0 || last == n.Line {
		return last
	}
	n.Style &^= yaml.FlowStyle
	if n.Kind == yaml.MappingNode {
		for i := 0; i < len(n.Content); i += 2 {
			if key := n.Content[i]; document.KeyLength(key.Value+":") > 0 && document.LookOf(&yaml.Node{Value: key.Value}) == document.LooksText && !document.IsNull(&yaml.Node{Kind: yaml.ScalarNode, Value: key.Value}) {
				key.Style &^= document.Quoted
			}
		}
	}
	return last
}

// hasAnchors reports whether the tree has anchors, which must precede their aliases, so
// that the order of fields matters.
func hasAnchors(n *yaml.Node) bool {
	return n.Anchor != "" || n.Kind == yaml.AliasNode || slices.ContainsFunc(n.Content, hasAnchors)
}

// order puts the fields of every object into the order of the reference; keys
// that are not known come last, in the order of the file.
func order(n *yaml.Node, t *schema.Type) {
	switch {
	case t == nil:
	case n.Kind == yaml.SequenceNode && t.Kind == schema.List:
		for _, child := range n.Content {
			order(child, t.Elem)
		}
	case n.Kind == yaml.MappingNode && t.Kind == schema.Map:
		for i := 1; i < len(n.Content); i += 2 {
			order(n.Content[i], t.Elem)
		}
	case n.Kind == yaml.MappingNode && t.Kind == schema.Struct:
		orderFields(n, t.Object)
	}
}

func orderFields(n *yaml.Node, o *schema.Object) {
	type pair struct {
		key, value *yaml.Node
		rank       int
	}
	pairs := make([]pair, 0, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		p := pair{n.Content[i], n.Content[i+1], len(o.Fields)}
		if f := o.Field(p.key.Value); f != nil {
			p.rank = slices.Index(o.Fields, f)
			order(p.value, f.Type)
		}
		pairs = append(pairs, p)
	}
	slices.SortStableFunc(pairs, func(a, b pair) int { return cmp.Compare(a.rank, b.rank) })
	n.Content = n.Content[:0]
	for _, p := range pairs {
		n.Content = append(n.Content, p.key, p.value)
	}
}

// sameMeaning reports whether two trees are equal except for comments and style.
func sameMeaning(a, b *yaml.Node) bool {
	if a.Kind != b.Kind || a.Value != b.Value || a.Anchor != b.Anchor || len(a.Content) != len(b.Content) {
		return false
	}
	if a.Kind == yaml.ScalarNode && (document.IsNull(a) != document.IsNull(b) || !document.IsNull(a) && document.LookOf(a) != document.LookOf(b)) {
		return false
	}
	if a.Style&yaml.TaggedStyle != b.Style&yaml.TaggedStyle || a.Style&yaml.TaggedStyle != 0 && a.Tag != b.Tag {
		return false
	}
	return slices.EqualFunc(a.Content, b.Content, sameMeaning)
}

// sameComments reports whether two trees have the same comments at the same
// nodes.
func sameComments(a, b *yaml.Node) bool {
	return a.HeadComment == b.HeadComment && a.LineComment == b.LineComment && a.FootComment == b.FootComment &&
		slices.EqualFunc(a.Content, b.Content, sameComments)
}

// commentLines returns the lines of all comments, sorted.
func commentLines(n *yaml.Node) []string {
	var out []string
	var walk func(n *yaml.Node)
	walk = func(n *yaml.Node) {
		for _, c := range []string{n.HeadComment, n.LineComment, n.FootComment} {
			for line := range strings.Lines(c) {
				if line = strings.TrimSpace(line); line != "" {
					out = append(out, line)
				}
			}
		}
		for _, child := range n.Content {
			walk(child)
		}
	}
	walk(n)
	slices.Sort(out)
	return out
}
