package format

import (
	"bytes"
	"strings"

	"go.yaml.in/yaml/v4"
)

// blankLines carries the blank lines of a source over to its canonical form:
// one above each entry that had one or more above it.
type blankLines struct {
	lines [][]byte
	// above holds, for each entry in the order of a walk, whether it follows a blank line.
	above []bool
}

// collect notes the blank lines of the source that root was read from.
func (b *blankLines) collect(root *yaml.Node) {
	seen := map[int]bool{}
	eachEntry(root, func(n *yaml.Node) {
		line := firstLine(n)
		// The first field of an object in a list shares its line with the dash.
		if seen[line] {
			line = 0
		}
		seen[line] = true
		b.above = append(b.above, line >= 2 && line-2 < len(b.lines) && len(bytes.TrimSpace(b.lines[line-2])) == 0)
	})
}

// insert puts the noted blank lines into out, which root was read from.
func (b *blankLines) insert(out []byte, root *yaml.Node) []byte {
	before := map[int]bool{}
	i := 0
	eachEntry(root, func(n *yaml.Node) {
		if i < len(b.above) && b.above[i] {
			before[firstLine(n)] = true
		}
		i++
	})
	var result bytes.Buffer
	line, blank := 0, true
	for text := range bytes.Lines(out) {
		line++
		if before[line] && !blank {
			result.WriteByte('\n')
		}
		result.Write(text)
		blank = len(bytes.TrimSpace(text)) == 0
	}
	return result.Bytes()
}

// eachEntry calls visit for each key and each element that begins a line.
func eachEntry(n *yaml.Node, visit func(*yaml.Node)) {
	step := 1
	if n.Kind == yaml.MappingNode {
		step = 2
	}
	for i := 0; i+step-1 < len(n.Content); i += step {
		if n.Style&yaml.FlowStyle == 0 {
			visit(n.Content[i])
		}
		eachEntry(n.Content[i+step-1], visit)
	}
}

// firstLine returns the line on which an entry begins, its comment included.
func firstLine(n *yaml.Node) int {
	if n.HeadComment == "" {
		return n.Line
	}
	return n.Line - 1 - strings.Count(strings.TrimRight(n.HeadComment, "\n"), "\n")
}
