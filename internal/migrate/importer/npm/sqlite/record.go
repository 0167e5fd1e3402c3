package sqlite

import (
	"encoding/binary"
	"errors"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
)

// varint reads an integer of variable length and says how many bytes it has; 0 if it is
// cut off.
func varint(b []byte) (uint64, int) {
	var v uint64
	for i := range min(len(b), 9) {
		if i == 8 {
			return v<<8 | uint64(b[i]), 9
		}
		v = v<<7 | uint64(b[i]&0x7f)
		if b[i] < 0x80 {
			return v, i + 1
		}
	}
	return 0, 0
}

var errRecord = errors.New("a row cannot be read: the file is damaged")

// record reads the values of a row (section 2.1).
func (d *DB) record(p []byte, id int64, columns []column) (Row, error) {
	size, n := varint(p)
	if n == 0 || size > uint64(len(p)) || size < uint64(n) {
		return nil, errRecord
	}
	types, body := p[n:size], p[size:]
	row := make(Row, len(columns))
	for i, c := range columns {
		if len(types) == 0 {
			row[c.name] = c.otherwise
			continue
		}
		kind, n := varint(types)
		if n == 0 {
			return nil, errRecord
		}
		types = types[n:]
		v, used, ok := d.value(kind, body)
		if !ok {
			return nil, errRecord
		}
		body = body[used:]
		if v == nil && c.isID {
			v = id
		}
		row[columns[i].name] = v
	}
	return row, nil
}

// value reads a value of a serial type and says how many bytes it has.
func (d *DB) value(kind uint64, b []byte) (v any, used int, ok bool) {
	sizes := [...]int{0, 1, 2, 3, 4, 6, 8, 8, 0, 0}
	switch {
	case kind < 10:
		used = sizes[kind]
	case kind >= 12 && kind/2-6 <= uint64(len(b)):
		used = int((kind - 12) / 2)
	default:
		return nil, 0, false
	}
	if used > len(b) {
		return nil, 0, false
	}
	b = b[:used]
	switch {
	case kind == 0:
		return nil, 0, true
	case kind <= 6:
		n := int64(int8(b[0]))
		for _, c := range b[1:] {
			n = n<<8 | int64(c)
		}
		return n, used, true
	case kind == 7:
		return math.Float64frombits(binary.BigEndian.Uint64(b)), used, true
	case kind <= 9:
		return int64(kind - 8), 0, true
	case kind%2 == 0:
		return b, used, true
	}
	return d.text(b), used, true
}

func (d *DB) text(b []byte) string {
	if d.utf16 == nil {
		return strings.ToValidUTF8(string(b), "\uFFFD")
	}
	units := make([]uint16, len(b)/2)
	for i := range units {
		units[i] = d.utf16.Uint16(b[2*i:])
	}
	return string(utf16.Decode(units))
}

// column is a column of a table.
type column struct {
	name      string
	isID      bool // INTEGER PRIMARY KEY: its value is the number of the row
	otherwise any  // the default of rows that were written before the column was added
}

// parseColumns reads the columns from a CREATE TABLE statement. It ignores what it does
// not know: a wrong statement results in columns that are never read.
func parseColumns(sql string) []column {
	begin := strings.IndexByte(sql, '(')
	if begin < 0 {
		return nil
	}
	var columns []column
	for _, part := range split(tokens(sql[begin+1:])) {
		if len(part) == 0 {
			continue
		}
		switch strings.ToUpper(part[0]) {
		case "CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN":
			continue
		}
		upper := strings.ToUpper(strings.Join(part[1:], " "))
		c := column{name: strings.ToLower(unquote(part[0]))}
		c.isID = strings.HasPrefix(upper, "INTEGER ") && strings.Contains(upper, "PRIMARY KEY")
		for i := 1; i+1 < len(part); i++ {
			if strings.EqualFold(part[i], "DEFAULT") {
				c.otherwise = literal(part[i+1:])
			}
		}
		columns = append(columns, c)
	}
	return columns
}

// literal reads a default.
func literal(t []string) any {
	for len(t) > 1 && t[0] == "(" {
		t = t[1:]
	}
	text := t[0]
	if text[0] == '\'' || text[0] == '"' {
		return unquote(text)
	}
	if len(t) > 1 && (text == "-" || text == "+") {
		text += t[1]
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	if f, err := strconv.ParseFloat(text, 64); err == nil {
		return f
	}
	switch strings.ToUpper(text) {
	case "TRUE":
		return int64(1)
	case "FALSE":
		return int64(0)
	}
	return nil
}

// split cuts tokens at the commas of the outermost level, up to its end.
func split(t []string) [][]string {
	var parts [][]string
	var part []string
	depth := 0
	for _, text := range t {
		switch {
		case text == "(":
			depth++
		case text == ")" && depth == 0:
			return append(parts, part)
		case text == ")":
			depth--
		case text == "," && depth == 0:
			parts, part = append(parts, part), nil
			continue
		}
		part = append(part, text)
	}
	return append(parts, part)
}

// tokens cuts SQL into words, quoted texts and signs; comments are left out.
func tokens(sql string) []string {
	var out []string
	for i := 0; i < len(sql); {
		c := sql[i]
		end := i + 1
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			i++
			continue
		case strings.HasPrefix(sql[i:], "--"):
			i += strings.IndexByte(sql[i:]+"\n", '\n')
			continue
		case strings.HasPrefix(sql[i:], "/*"):
			if n := strings.Index(sql[i:], "*/"); n >= 0 {
				i += n + 2
				continue
			}
			return out
		case c == '\'' || c == '"' || c == '`' || c == '[':
			end = quotedEnd(sql, i)
		case isWord(c):
			for end < len(sql) && isWord(sql[end]) {
				end++
			}
		}
		out = append(out, sql[i:end])
		i = end
	}
	return out
}

func isWord(c byte) bool {
	return c == '_' || c == '.' || c >= 0x80 || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

// quotedEnd returns where a quoted text ends; a doubled quote is a quote.
func quotedEnd(sql string, begin int) int {
	quote := sql[begin]
	if quote == '[' {
		quote = ']'
	}
	for i := begin + 1; i < len(sql); i++ {
		if sql[i] != quote {
			continue
		}
		if i+1 < len(sql) && sql[i+1] == quote && quote != ']' {
			i++
			continue
		}
		return i + 1
	}
	return len(sql)
}

func unquote(text string) string {
	if len(text) < 2 || !strings.ContainsRune("'\"`[", rune(text[0])) {
		return text
	}
	quote := text[:1]
	text = text[1 : len(text)-1]
	return strings.ReplaceAll(text, quote+quote, quote)
}
