// Package fcgi is FastCGI as far as requests to php-fpm need it: what a request is made of
// (record.go, params.go), the records of a response (reader.go), and the head that a script
// writes (head.go). It follows the FastCGI Specification of 1996, version 1, and RFC 3875
// (CGI). Connections are those of package upstream.
//
// A connection carries one request at a time, whose id is 1: no server multiplexes. The
// roles Authorizer and Filter and the management records are not supported.
package fcgi

import "encoding/binary"

// The types of records (FastCGI, section 8).
const (
	typeBegin  = 1
	typeEnd    = 3
	typeParams = 4
	typeStdin  = 5
	typeStdout = 6
	typeStderr = 7
)

const (
	version    = 1
	requestID  = 1
	headerSize = 8
	// maxContent is the longest content of a record that is written, in bytes: a multiple
	// of 8, as the specification recommends.
	maxContent = 65528
	roleServer = 1 // the responder
	keepConn   = 1 // FCGI_KEEP_CONN
)

func appendHeader(b []byte, kind byte, length int) []byte {
	b = append(b, version, kind, 0, requestID)
	b = binary.BigEndian.AppendUint16(b, uint16(length))
	return append(b, 0, 0)
}

// AppendBegin appends the start of a request: its role and all of its parameters, which
// AppendParams has encoded. keep asks the server to leave the connection open after the
// response.
func AppendBegin(b []byte, keep bool, params []byte) []byte {
	flags := byte(0)
	if keep {
		flags = keepConn
	}
	b = appendHeader(b, typeBegin, 8)
	b = append(b, 0, roleServer, flags, 0, 0, 0, 0, 0)
	for len(params) > 0 {
		n := min(len(params), maxContent)
		b = append(appendHeader(b, typeParams, n), params[:n]...)
		params = params[n:]
	}
	return appendHeader(b, typeParams, 0)
}

// AppendInputHeader appends the header of a record with n bytes of the request body, which
// must follow: 1 to 65528, or 0 for the end of the body.
func AppendInputHeader(b []byte, n int) []byte { return appendHeader(b, typeStdin, n) }

// appendPair appends one parameter (FastCGI, section 3.4).
func appendPair(b []byte, name, value string) []byte {
	b = appendSize(appendSize(b, len(name)), len(value))
	return append(append(b, name...), value...)
}

func appendSize(b []byte, n int) []byte {
	if n < 128 {
		return append(b, byte(n))
	}
	return binary.BigEndian.AppendUint32(b, uint32(n)|1<<31)
}

// Pairs returns the names and values of encoded parameters, and false if they are
// incomplete.
func Pairs(b []byte) (pairs [][2]string, ok bool) {
	for len(b) > 0 {
		var sizes [2]int
		for i := range sizes {
			switch {
			case len(b) >= 1 && b[0] < 128:
				sizes[i], b = int(b[0]), b[1:]
			case len(b) >= 4:
				sizes[i], b = int(binary.BigEndian.Uint32(b)&^(1<<31)), b[4:]
			default:
				return pairs, false
			}
		}
		name, value := sizes[0], sizes[1]
		if name > len(b) || value > len(b)-name {
			return pairs, false
		}
		pairs = append(pairs, [2]string{string(b[:name]), string(b[name : name+value])})
		b = b[name+value:]
	}
	return pairs, true
}
