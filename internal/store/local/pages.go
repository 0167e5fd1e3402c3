package local

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
)

// bbolt maps its file into memory and trusts what is in it: an offset behind the end of the
// file is a fault, and a page that is its own child is a loop without end. A file that others
// may have made is checked here first, by reading it: each page once, so the time is bounded
// by the size of the file.
//
// The format (go.etcd.io/bbolt, internal/common) is that of the machine's memory. A page has a header of 16 bytes: its number (8), kind (2), the count of its
// elements (2) and how many pages follow that belong to it (4).
const (
	pageHeader  = 16
	pageElement = 16
	metaBytes   = 64
	metaMagic   = 0xED0CDAED
	metaFormat  = 2

	kindBranch   = 0x01
	kindLeaf     = 0x02
	kindMeta     = 0x04
	kindFreelist = 0x10

	bucketElement = 0x01 // a flag of an element of a leaf
	bucketHeader  = 16   // root page and sequence

	minPageSize = 512
	maxPageSize = 64 << 10
	// maxNode is how large a node of a tree can be: a page has few values of maxOnDisk.
	maxNode = 8*maxOnDisk + maxPageSize
	// maxTreeDepth bounds how deep trees and buckets are together.
	maxTreeDepth = 40
	// noFreelist is the number of the page of free pages where none is kept, which is no
	// option of ours.
	noFreelist = math.MaxUint64
)

// metaPage is one of the two pages that say where everything is.
type metaPage struct {
	pageSize             uint32
	root, freelist, high uint64 // high is the number of pages
	transaction          uint64
}

// pageCheck is a check under way.
type pageCheck struct {
	file io.ReaderAt
	meta metaPage
	used []uint64 // a bit for each page that was seen
}

// checkPages checks the structure of a database: pages are within the file and used once,
// elements within their pages, and keys in order. The error is *damaged, or one of reading.
func checkPages(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() > maxDB {
		return &damaged{fmt.Sprintf("the database has more than %d bytes", int64(maxDB))}
	}
	return checkPagesOf(f, info.Size())
}

func checkPagesOf(f io.ReaderAt, size int64) error {
	meta, err := findMeta(f)
	if err != nil {
		return err
	}
	return checkPagesFrom(f, size, meta)
}

// checkOpened checks the pages of a database that bbolt has opened and holds the lock of. A
// damaged page that only commits read would otherwise refuse all of them, also after a
// restart. One of the two meta pages may be torn: bbolt goes on from the commit before.
func checkOpened(f *os.File, pageSize int) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	first, err := readMeta(f, 0, 0)
	second, err2 := readMeta(f, int64(pageSize), 1)
	switch {
	case err != nil && err2 != nil:
		return errors.Join(err, err2)
	case err != nil || err2 == nil && second.transaction > first.transaction:
		first = second
	}
	return checkPagesFrom(f, info.Size(), first)
}

func checkPagesFrom(f io.ReaderAt, size int64, meta metaPage) error {
	if meta.high < 4 || meta.high > uint64(size)/uint64(meta.pageSize) {
		return &damaged{fmt.Sprintf("the database has %d bytes for %d pages of %d", size, meta.high, meta.pageSize)}
	}
	c := &pageCheck{file: f, meta: meta, used: make([]uint64, meta.high/64+1)}
	c.use(0, 0)
	c.use(1, 0)
	if err := c.tree(meta.root, nil, nil, 0); err != nil {
		return err
	}
	return c.freelist()
}

// findMeta returns the meta page that bbolt will use: the later one. A copy has two.
func findMeta(f io.ReaderAt) (metaPage, error) {
	first, err := readMeta(f, 0, 0)
	if err != nil {
		return first, err
	}
	second, err := readMeta(f, int64(first.pageSize), 1)
	if err == nil && second.pageSize != first.pageSize {
		err = &damaged{"the meta pages have different page sizes"}
	}
	if second.transaction > first.transaction {
		first = second
	}
	return first, err
}

func readMeta(f io.ReaderAt, at int64, number uint64) (m metaPage, err error) {
	b := make([]byte, pageHeader+metaBytes)
	if _, err := f.ReadAt(b, at); errors.Is(err, io.EOF) {
		return m, &damaged{"the database is shorter than its meta pages"}
	} else if err != nil {
		return m, err
	}
	le := binary.NativeEndian
	if !validMeta(b[pageHeader:]) || le.Uint32(b[pageHeader:]) != metaMagic || le.Uint32(b[pageHeader+4:]) != metaFormat {
		return m, &damaged{"a meta page is not valid"}
	}
	if le.Uint64(b) != number || le.Uint16(b[8:]) != kindMeta {
		return m, &damaged{"a meta page is another page"}
	}
	b = b[pageHeader:]
	m = metaPage{pageSize: le.Uint32(b[8:]), root: le.Uint64(b[16:]), freelist: le.Uint64(b[32:]), high: le.Uint64(b[40:]), transaction: le.Uint64(b[48:])}
	if m.pageSize < minPageSize || m.pageSize > maxPageSize || m.pageSize&(m.pageSize-1) != 0 {
		return m, &damaged{fmt.Sprintf("pages of %d bytes", m.pageSize)}
	}
	return m, nil
}

// use notes that a page is used with those that follow it, and reports whether all are there
// and were not used before.
func (c *pageCheck) use(page, more uint64) bool {
	if page >= c.meta.high || more >= c.meta.high-page {
		return false
	}
	for p := page; p <= page+more; p++ {
		if c.used[p/64]>>(p%64)&1 != 0 {
			return false
		}
		c.used[p/64] |= 1 << (p % 64)
	}
	return true
}

// node is a page with what follows it.
type node struct {
	number uint64
	kind   uint16
	count  int
	bytes  []byte
}

// read reads a page once.
func (c *pageCheck) read(number uint64, max int64) (*node, error) {
	if number >= c.meta.high {
		return nil, &damaged{fmt.Sprintf("page %d of %d", number, c.meta.high)}
	}
	at, size := int64(number)*int64(c.meta.pageSize), int64(c.meta.pageSize)
	header := make([]byte, pageHeader)
	if _, err := c.file.ReadAt(header, at); err != nil {
		return nil, err
	}
	le := binary.NativeEndian
	n := &node{number: number, kind: le.Uint16(header[8:]), count: int(le.Uint16(header[10:]))}
	more := uint64(le.Uint32(header[12:]))
	switch size *= int64(more) + 1; {
	case le.Uint64(header) != number:
		return nil, &damaged{fmt.Sprintf("page %d says that it is %d", number, le.Uint64(header))}
	case size > max:
		return nil, &damaged{fmt.Sprintf("page %d has %d bytes", number, size)}
	case !c.use(number, more):
		return nil, &damaged{fmt.Sprintf("page %d is used twice or goes on after the end", number)}
	}
	n.bytes = make([]byte, size)
	_, err := c.file.ReadAt(n.bytes, at)
	return n, err
}

// tree checks a page and those below it. Their keys are from low on and before high, nil for
// no bound.
func (c *pageCheck) tree(number uint64, low, high []byte, depth int) error {
	if depth > maxTreeDepth {
		return &damaged{"the tree is too deep"}
	}
	n, err := c.read(number, maxNode)
	if err != nil {
		return err
	}
	return c.node(n, low, high, depth)
}

func (c *pageCheck) node(n *node, low, high []byte, depth int) error {
	switch {
	case n.kind != kindBranch && n.kind != kindLeaf:
		return &damaged{fmt.Sprintf("page %d of a tree has the kind %#x", n.number, n.kind)}
	case n.kind == kindBranch && n.count == 0, n.kind == kindLeaf && n.count == 0 && low != nil:
		return &damaged{fmt.Sprintf("page %d is empty", n.number)}
	case pageHeader+n.count*pageElement > len(n.bytes):
		return &damaged{fmt.Sprintf("page %d has no place for %d elements", n.number, n.count)}
	}
	keys := make([][]byte, n.count)
	for i := range keys {
		key, ok := n.element(i)
		if !ok || len(key) == 0 {
			return &damaged{fmt.Sprintf("element %d of page %d is outside of it", i, n.number)}
		}
		if bytes.Compare(key, low) < 0 && low != nil || high != nil && bytes.Compare(key, high) >= 0 || i > 0 && bytes.Compare(key, keys[i-1]) <= 0 {
			return &damaged{fmt.Sprintf("key %d of page %d is out of order", i, n.number)}
		}
		keys[i] = key
	}
	for i, key := range keys {
		var err error
		if n.kind == kindBranch {
			next := high
			if i+1 < len(keys) {
				next = keys[i+1]
			}
			err = c.tree(binary.NativeEndian.Uint64(n.at(i)[8:]), key, next, depth+1)
		} else if flags := binary.NativeEndian.Uint32(n.at(i)); flags != 0 {
			err = c.bucket(n, i, flags, depth)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// at returns the bytes of an element.
func (n *node) at(i int) []byte { return n.bytes[pageHeader+i*pageElement:][:pageElement] }

// element returns the key of an element; false if it, or the value, is outside of the page.
// Where the bytes are is counted from the element.
func (n *node) element(i int) (key []byte, ok bool) {
	le, e := binary.NativeEndian, n.at(i)
	position, size, value := uint64(le.Uint32(e)), uint64(le.Uint32(e[4:])), uint64(0)
	if n.kind == kindLeaf {
		position, size, value = uint64(le.Uint32(e[4:])), uint64(le.Uint32(e[8:])), uint64(le.Uint32(e[12:]))
	}
	position += uint64(pageHeader + i*pageElement)
	if position < uint64(pageHeader+n.count*pageElement) || position+size+value > uint64(len(n.bytes)) {
		return nil, false
	}
	return n.bytes[position:][:size], true
}

// value returns the value of an element of a leaf that was checked.
func (n *node) value(i int) []byte {
	e := n.at(i)
	position := pageHeader + i*pageElement + int(binary.NativeEndian.Uint32(e[4:])) + int(binary.NativeEndian.Uint32(e[8:]))
	return n.bytes[position:][:binary.NativeEndian.Uint32(e[12:])]
}

// bucket checks a bucket in a leaf: its tree, or the page within its value if it is small.
func (c *pageCheck) bucket(n *node, i int, flags uint32, depth int) error {
	v := n.value(i)
	if flags != bucketElement || len(v) < bucketHeader {
		return &damaged{fmt.Sprintf("element %d of page %d is no bucket", i, n.number)}
	}
	if n.number == 0 {
		return &damaged{"a bucket within a small one"}
	}
	le := binary.NativeEndian
	if root := le.Uint64(v); root != 0 {
		return c.tree(root, nil, nil, depth+1)
	}
	if v = v[bucketHeader:]; len(v) < pageHeader {
		return &damaged{fmt.Sprintf("element %d of page %d is half a bucket", i, n.number)}
	}
	small := &node{kind: le.Uint16(v[8:]), count: int(le.Uint16(v[10:])), bytes: v}
	if le.Uint64(v) != 0 || le.Uint32(v[12:]) != 0 || small.kind != kindLeaf {
		return &damaged{fmt.Sprintf("element %d of page %d is no small bucket", i, n.number)}
	}
	return c.node(small, nil, nil, depth+1)
}

// freelist checks the list of pages that may be written: none is in use, or listed twice.
func (c *pageCheck) freelist() error {
	if c.meta.freelist == noFreelist {
		return &damaged{"the list of free pages is missing"}
	}
	n, err := c.read(c.meta.freelist, int64(c.meta.high+2)*8+maxPageSize)
	if err != nil {
		return err
	}
	list, le := n.bytes[pageHeader:], binary.NativeEndian
	count := uint64(n.count)
	if n.count == math.MaxUint16 && len(list) >= 8 {
		count, list = le.Uint64(list), list[8:]
	}
	if n.kind != kindFreelist || count > uint64(len(list))/8 {
		return &damaged{"the list of free pages is none, or too short"}
	}
	for i := range count {
		if !c.use(le.Uint64(list[8*i:]), 0) {
			return &damaged{fmt.Sprintf("free page %d is in use, or is not there", le.Uint64(list[8*i:]))}
		}
	}
	return nil
}
