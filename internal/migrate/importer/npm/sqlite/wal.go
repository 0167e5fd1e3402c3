package sqlite

import (
	"encoding/binary"
	"errors"
)

// readLog reads the pages of a write-ahead log (section 4): those of whole
// transactions, up to the first frame that is of an older log or damaged, as SQLite
// does. An empty log has none.
func (d *DB) readLog(wal []byte) error {
	const headerSize, frameHead = 32, 24
	if len(wal) < headerSize {
		return nil
	}
	var order binary.ByteOrder
	switch binary.BigEndian.Uint32(wal) {
	case 0x377f0682:
		order = binary.LittleEndian
	case 0x377f0683:
		order = binary.BigEndian
	default:
		return errors.New("the write-ahead log beside the database is of another kind")
	}
	if size := int(binary.BigEndian.Uint32(wal[8:])); size != d.pageSize {
		return nil // of a database before
	}
	sum := checksum(order, [2]uint32{}, wal[:24])
	if sum != at(wal[24:]) {
		return nil
	}
	salt := string(wal[16:24])
	pending := map[uint32][]byte{}
	for wal = wal[headerSize:]; len(wal) >= frameHead+d.pageSize; wal = wal[frameHead+d.pageSize:] {
		head, page := wal[:frameHead], wal[frameHead:frameHead+d.pageSize]
		if string(head[8:16]) != salt {
			break
		}
		sum = checksum(order, checksum(order, sum, head[:8]), page)
		if sum != at(head[16:]) {
			break
		}
		pending[binary.BigEndian.Uint32(head)] = page
		if size := binary.BigEndian.Uint32(head[4:]); size > 0 { // a commit
			for n, p := range pending {
				d.log[n] = p
			}
			clear(pending)
			d.pages = size
		}
	}
	return nil
}

func at(b []byte) [2]uint32 {
	return [2]uint32{binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])}
}

// checksum is that of section 4.2.
func checksum(order binary.ByteOrder, s [2]uint32, b []byte) [2]uint32 {
	for ; len(b) >= 8; b = b[8:] {
		s[0] += order.Uint32(b) + s[1]
		s[1] += order.Uint32(b[4:]) + s[0]
	}
	return s
}
