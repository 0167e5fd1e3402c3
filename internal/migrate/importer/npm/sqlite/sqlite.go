// Package sqlite reads tables out of a database file of SQLite, without SQLite: the
// pages of tables, overflow pages and the write-ahead log. It writes nothing and takes
// no lock, so it reads a file that a program has open as it was at its last commit.
//
// It knows what an importer needs: whole tables of ordinary (rowid) form. It runs no
// SQL. The format is that of https://www.sqlite.org/fileformat2.html; sections below
// are its.
package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// The bounds of a file that is read.
const (
	// MaxSize is the largest file, in bytes.
	MaxSize    = 256 << 20
	maxRows    = 1_000_000
	maxDepth   = 40
	maxPayload = 64 << 20
)

// DB is a database that was read. It may be used from several goroutines at once.
type DB struct {
	data     []byte
	log      map[uint32][]byte // pages of the write-ahead log, by number
	pageSize int
	usable   int // of a page, without what is reserved at its end
	pages    uint32
	utf16    binary.ByteOrder // nil for UTF-8
	tables   map[string]table
}

type table struct {
	root    uint32
	columns []column
}

// Row is a row of a table by the names of its columns in lower case. A value is nil,
// int64, float64, string or []byte.
type Row map[string]any

var magic = []byte("SQLite format 3\x00")

// Is reports whether data starts as a database does.
func Is(data []byte) bool { return len(data) >= 100 && string(data[:16]) == string(magic) }

// Open reads a database: the content of its file, and that of the file beside it whose
// name ends with -wal, nil if there is none. Errors say what is wrong with the file.
func Open(data, wal []byte) (*DB, error) {
	if !Is(data) {
		return nil, errors.New("not a database of SQLite")
	}
	if len(data) > MaxSize || len(wal) > MaxSize {
		return nil, fmt.Errorf("larger than %d MiB", MaxSize>>20)
	}
	d := &DB{data: data, pageSize: int(binary.BigEndian.Uint16(data[16:])), log: map[uint32][]byte{}}
	if d.pageSize == 1 {
		d.pageSize = 65536
	}
	if d.pageSize < 512 || d.pageSize&(d.pageSize-1) != 0 {
		return nil, fmt.Errorf("invalid page size %d", d.pageSize)
	}
	if err := d.readLog(wal); err != nil {
		return nil, err
	}
	if err := d.readHeader(); err != nil {
		return nil, err
	}
	return d, d.readSchema()
}

// readHeader reads the header of the first page (section 1.3), which may be in the log.
func (d *DB) readHeader() error {
	first := d.data
	if p := d.log[1]; p != nil {
		first = p
	}
	if d.pages == 0 {
		d.pages = uint32(len(d.data) / d.pageSize)
	}
	d.usable = d.pageSize - int(first[20])
	if d.usable < 480 {
		return fmt.Errorf("%d bytes of each page are reserved", first[20])
	}
	switch encoding := binary.BigEndian.Uint32(first[56:]); encoding {
	case 0, 1:
	case 2:
		d.utf16 = binary.LittleEndian
	case 3:
		d.utf16 = binary.BigEndian
	default:
		return fmt.Errorf("unknown text encoding %d", encoding)
	}
	return nil
}

// readSchema reads which tables there are (section 2.6).
func (d *DB) readSchema() error {
	d.tables = map[string]table{}
	columns := []column{{name: "type"}, {name: "name"}, {name: "tbl_name"}, {name: "rootpage"}, {name: "sql"}}
	return d.walk(1, columns, func(r Row) error {
		name, _ := r["name"].(string)
		root, _ := r["rootpage"].(int64)
		sql, _ := r["sql"].(string)
		if r["type"] != "table" || root <= 0 {
			return nil
		}
		d.tables[strings.ToLower(name)] = table{uint32(root), parseColumns(sql)}
		return nil
	})
}

// Tables returns the names of the tables in lower case and in order.
func (d *DB) Tables() []string {
	var names []string
	for name := range d.tables {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Rows returns all rows of a table, in the order of their row numbers; none if there is
// no such table. Columns that a row was written without have their defaults.
func (d *DB) Rows(name string) ([]Row, error) {
	t, ok := d.tables[strings.ToLower(name)]
	if !ok {
		return nil, nil
	}
	var rows []Row
	err := d.walk(t.root, t.columns, func(r Row) error {
		if len(rows) >= maxRows {
			return fmt.Errorf("more than %d rows", maxRows)
		}
		rows = append(rows, r)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("table %s: %w", name, err)
	}
	return rows, nil
}

// page returns a page by its number, from 1.
func (d *DB) page(n uint32) ([]byte, error) {
	if p := d.log[n]; p != nil {
		return p, nil
	}
	begin := (int(n) - 1) * d.pageSize
	if n == 0 || n > d.pages || begin+d.pageSize > len(d.data) {
		return nil, fmt.Errorf("page %d is not in the file: it is cut off or damaged", n)
	}
	return d.data[begin : begin+d.pageSize], nil
}

// walk calls each with every row of the tree below a page (section 1.6).
func (d *DB) walk(root uint32, columns []column, each func(Row) error) error {
	seen := map[uint32]bool{}
	var visit func(n uint32, depth int) error
	visit = func(n uint32, depth int) error {
		if seen[n] || depth > maxDepth {
			return fmt.Errorf("page %d is there twice: the file is damaged", n)
		}
		seen[n] = true
		p, err := d.page(n)
		if err != nil {
			return err
		}
		head := p
		if n == 1 {
			head = p[100:]
		}
		count, cells := int(binary.BigEndian.Uint16(head[3:])), 8
		if head[0] == interiorTable {
			cells = 12
		} else if head[0] != leafTable {
			return fmt.Errorf("page %d is no page of a table (type %d)", n, head[0])
		}
		if cells+2*count > len(head) {
			return fmt.Errorf("page %d has %d cells: the file is damaged", n, count)
		}
		for i := range count {
			at := int(binary.BigEndian.Uint16(head[cells+2*i:]))
			if at >= len(p) || head[0] == interiorTable && at+4 > len(p) {
				return fmt.Errorf("page %d: a cell is outside of it", n)
			}
			if head[0] == interiorTable {
				err = visit(binary.BigEndian.Uint32(p[at:]), depth+1)
			} else {
				err = d.cell(p[at:], columns, each)
			}
			if err != nil {
				return err
			}
		}
		if head[0] == interiorTable {
			return visit(binary.BigEndian.Uint32(head[8:]), depth+1)
		}
		return nil
	}
	return visit(root, 0)
}

// The types of pages of tables.
const (
	interiorTable = 0x05
	leafTable     = 0x0d
)

// cell reads a row of a leaf.
func (d *DB) cell(c []byte, columns []column, each func(Row) error) error {
	size, n := varint(c)
	id, m := varint(c[n:])
	if n == 0 || m == 0 {
		return errors.New("a cell is cut off")
	}
	payload, err := d.payload(c[n+m:], size)
	if err != nil {
		return err
	}
	row, err := d.record(payload, int64(id), columns)
	if err != nil {
		return err
	}
	return each(row)
}

// payload returns the whole of a record, with what lies on overflow pages (section
// 1.6, "Cell payload overflow pages").
func (d *DB) payload(c []byte, size uint64) ([]byte, error) {
	if size > maxPayload {
		return nil, fmt.Errorf("a row of %d bytes", size)
	}
	local := int(size)
	if limit := d.usable - 35; local > limit {
		least := (d.usable-12)*32/255 - 23
		local = least + (int(size)-least)%(d.usable-4)
		if local > limit {
			local = least
		}
	}
	if local > len(c) || int(size) > local && local+4 > len(c) {
		return nil, errors.New("a row is cut off")
	}
	if int(size) == local {
		return c[:local], nil
	}
	out := append(make([]byte, 0, min(int(size), 1<<20)), c[:local]...)
	next := binary.BigEndian.Uint32(c[local:])
	for len(out) < int(size) {
		p, err := d.page(next)
		if err != nil {
			return nil, err
		}
		out = append(out, p[4:min(d.usable, 4+int(size)-len(out))]...)
		next = binary.BigEndian.Uint32(p)
	}
	return out, nil
}
