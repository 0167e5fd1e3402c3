// Package geotest makes databases of countries and networks for tests.
//
// Write writes the MMDB format, version 2.0, as far as tests need it: an IPv6 tree with
// records of 32 bits, and data of maps, texts and numbers. ReadCSV reads the networks of a
// database in the form START,END,COUNTRY, one range of addresses a line, which public domain
// databases have; the command in convert makes a file of them.
package geotest

import (
	"bytes"
	"encoding/binary"
	"maps"
	"net/netip"
	"slices"
	"time"
)

// Network is a network with its data. Networks of a database do not overlap.
type Network struct {
	// Prefix is the network, such as 203.0.113.0/24.
	Prefix netip.Prefix
	// Data is what the database has about it: texts, numbers, lists and maps.
	Data map[string]any
}

// Of returns a network that is written as text. It panics if it is not one.
func Of(network string, data map[string]any) Network {
	return Network{netip.MustParsePrefix(network), data}
}

// node is a node of the tree: its two records are a node, data, or nothing.
type node struct {
	next [2]*node
	leaf [2]map[string]any
}

// Write returns a database of a type, such as DBIP-Country-Lite, that was built at a time.
func Write(kind string, built time.Time, all ...Network) []byte {
	root := &node{}
	for _, w := range all {
		p := w.Prefix
		bits, address := p.Bits(), p.Addr().As16()
		if p.Addr().Is4() { // ::/96 has the IPv4 addresses
			v4 := p.Addr().As4()
			address = [16]byte{}
			copy(address[12:], v4[:])
			bits += 96
		}
		at := root
		for i := range bits {
			bit := address[i/8] >> (7 - i%8) & 1
			if i == bits-1 {
				at.leaf[bit] = w.Data
				break
			}
			if at.next[bit] == nil {
				at.next[bit] = &node{}
			}
			at = at.next[bit]
		}
	}
	var nodes []*node
	number := map[*node]uint32{}
	var walk func(n *node)
	walk = func(n *node) {
		number[n] = uint32(len(nodes))
		nodes = append(nodes, n)
		for _, next := range n.next {
			if next != nil {
				walk(next)
			}
		}
	}
	walk(root)

	var tree, data bytes.Buffer
	offsets := map[string]uint32{} // of data that is there already
	for _, n := range nodes {
		for bit := range 2 {
			record := uint32(len(nodes)) // nothing
			switch {
			case n.next[bit] != nil:
				record = number[n.next[bit]]
			case n.leaf[bit] != nil:
				var b bytes.Buffer
				value(&b, n.leaf[bit])
				offset, known := offsets[b.String()]
				if !known {
					offset = uint32(data.Len())
					offsets[b.String()] = offset
					data.Write(b.Bytes())
				}
				record = uint32(len(nodes)) + 16 + offset
			}
			_ = binary.Write(&tree, binary.BigEndian, record)
		}
	}
	var out bytes.Buffer
	out.Write(tree.Bytes())
	out.Write(make([]byte, 16))
	out.Write(data.Bytes())
	out.WriteString("\xab\xcd\xefMaxMind.com")
	value(&out, map[string]any{
		"node_count": uint32(len(nodes)), "record_size": uint16(32), "ip_version": uint16(6), "database_type": kind,
		"languages": []any{"en"}, "binary_format_major_version": uint16(2), "binary_format_minor_version": uint16(0),
		"build_epoch": uint64(built.Unix()), "description": map[string]any{"en": "test"},
	})
	return out.Bytes()
}

// The types of values.
const (
	typeText = 2
	typeU16  = 5
	typeU32  = 6
	typeMap  = 7
	typeU64  = 9
	typeList = 11
)

// value writes a value of the data section.
func value(b *bytes.Buffer, v any) {
	switch v := v.(type) {
	case string:
		control(b, typeText, len(v))
		b.WriteString(v)
	case uint16:
		number(b, typeU16, uint64(v), 2)
	case uint32:
		number(b, typeU32, uint64(v), 4)
	case uint64:
		number(b, typeU64, v, 8)
	case []any:
		control(b, typeList, len(v))
		for _, e := range v {
			value(b, e)
		}
	case map[string]any:
		control(b, typeMap, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			value(b, key)
			value(b, v[key])
		}
	default:
		panic("no such value")
	}
}

func number(b *bytes.Buffer, kind int, v uint64, size int) {
	control(b, kind, size)
	var all [8]byte
	binary.BigEndian.PutUint64(all[:], v)
	b.Write(all[8-size:])
}

// control writes the control byte of a value of fewer than 29 bytes, or of fewer than 285.
func control(b *bytes.Buffer, kind, size int) {
	first := kind << 5
	if kind > 7 {
		first = 0
	}
	long := size >= 29
	if long {
		first |= 29
	} else {
		first |= size
	}
	b.WriteByte(byte(first))
	if kind > 7 {
		b.WriteByte(byte(kind - 7))
	}
	if long {
		b.WriteByte(byte(size - 29))
	}
}
