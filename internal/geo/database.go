package geo

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/oschwald/maxminddb-golang/v2"
)

// maxBytes is how large a database is, in memory.
const maxBytes = 512 << 20

// database is a database of countries, of networks, or of both, in memory. It is not
// changed, and may be asked by several goroutines at once.
type database struct {
	reader *maxminddb.Reader
	// records remembers what records say, by their offset: a database has few hundred
	// different countries for its millions of networks, and decoding one takes longer than
	// finding it.
	records [recordSlots]atomic.Pointer[record]
}

const recordSlots = 4096 // a power of two

// record is what a record of a database says.
type record struct {
	offset  uintptr
	country string
	asn     uint32
}

// openDatabase reads a database, which may be packed with gzip, also in an archive of tar.
func openDatabase(data []byte) (*database, error) {
	data, err := unpack(data)
	if err != nil {
		return nil, err
	}
	r, err := maxminddb.OpenBytes(data)
	if err != nil {
		return nil, fmt.Errorf("not a database in the MMDB format: %w", err)
	}
	d := &database{reader: r}
	if r.Metadata.NodeCount == 0 {
		return nil, errors.New("the database is empty")
	}
	return d, nil
}

// unpack returns the database in what was downloaded or read.
func unpack(data []byte) ([]byte, error) {
	if !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		return data, nil
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("unpack: %w", err)
	}
	data, err = bounded(z)
	if err != nil || len(data) < 512 || string(data[257:262]) != "ustar" {
		return data, err
	}
	for t := tar.NewReader(bytes.NewReader(data)); ; {
		h, err := t.Next()
		if err != nil {
			return nil, fmt.Errorf("unpack: no .mmdb file in the archive: %w", err)
		}
		if strings.HasSuffix(h.Name, ".mmdb") && h.Typeflag == tar.TypeReg {
			return bounded(t)
		}
	}
}

func bounded(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxBytes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("unpack: %w", err)
	case len(data) > maxBytes:
		return nil, fmt.Errorf("unpack: larger than %d MiB", maxBytes>>20)
	}
	return data, nil
}

// nowhere is the record of addresses that a database does not have.
var nowhere = &record{}

// find returns the record of an address.
func (d *database) find(a netip.Addr) *record {
	result := d.reader.Lookup(a)
	if !result.Found() {
		return nowhere
	}
	offset := result.Offset()
	slot := &d.records[uint64(offset)*0x9e3779b97f4a7c15>>52&(recordSlots-1)]
	if r := slot.Load(); r != nil && r.offset == offset {
		return r
	}
	r := &record{offset: offset, country: countryOf(result), asn: asnOf(result)}
	slot.Store(r)
	return r
}

// countryPaths are where databases have the code of a country: those of MaxMind and DB-IP,
// and those of IPinfo and others that are flat.
var countryPaths = [][]any{{"country", "iso_code"}, {"country_code"}}

func countryOf(result maxminddb.Result) string {
	for _, path := range countryPaths {
		var code string
		if result.DecodePath(&code, path...) != nil || len(code) != 2 {
			continue
		}
		if code = strings.ToUpper(code); code[0] >= 'A' && code[0] <= 'Z' && code[1] >= 'A' && code[1] <= 'Z' {
			return code
		}
	}
	return ""
}

func asnOf(result maxminddb.Result) uint32 {
	var number uint32
	if result.DecodePath(&number, "autonomous_system_number") == nil && number > 0 {
		return number
	}
	var text string
	if result.DecodePath(&text, "asn") == nil {
		if n, err := strconv.ParseUint(strings.TrimPrefix(text, "AS"), 10, 32); err == nil {
			return uint32(n)
		}
	}
	return 0
}

// built returns when the database was made.
func (d *database) built() time.Time { return d.reader.Metadata.BuildTime() }

// licence is what is known of the publisher of a database.
type licence struct {
	prefix      string
	attribution string
	// age is how old a database may be that is used; 0 is not said.
	age time.Duration
}

// licences are those of the publishers of free databases, by the begin of the type that
// the database says.
var licences = []licence{
	{"GeoLite2", "This product includes GeoLite2 Data created by MaxMind, available from https://www.maxmind.com", 30 * 24 * time.Hour},
	{"GeoIP2", "", 0},
	{"DBIP", "IP Geolocation by DB-IP, https://db-ip.com", 0},
	{"ipinfo", "IP address data powered by IPinfo, https://ipinfo.io", 0},
}

// licence returns what is known of the publisher.
func (d *database) licence() licence {
	for _, l := range licences {
		if strings.HasPrefix(strings.ToLower(d.reader.Metadata.DatabaseType), strings.ToLower(l.prefix)) {
			return l
		}
	}
	return licence{}
}
