package ech

import (
	"encoding/base64"
	"fmt"
	"strings"
)

// RecordTTL is the time to live of records, in seconds.
const RecordTTL = 300

// usualPort is the port whose records have the name of the host (RFC 9460, section 9.1).
const usualPort = 443

// Owner returns the name that has the HTTPS record of a host whose port has a number: the
// host's own for 443, else one with the number in front (RFC 9460, section 9.1). For a wildcard
// and another number there is none, and Owner returns "": a * is only the first label.
func Owner(host string, number uint16) string {
	if number == usualPort {
		return host
	}
	if strings.HasPrefix(host, "*.") {
		return ""
	}
	return fmt.Sprintf("_%d._https.%s", number, host)
}

// Target returns the server that a record names: the host. "." is the name of the record
// (RFC 9460, section 2.5.2), which has addresses only if it is that of the host.
func Target(host, owner string) string {
	if host == owner {
		return "."
	}
	return host + "."
}

// Value returns the data of an HTTPS record with an ECHConfigList, as zone files have it: the
// target is the server, and speaks these protocols.
func Value(target string, protocols []string, list []byte) string {
	return "1 " + target + ` alpn="` + strings.Join(protocols, ",") + `" ech="` + base64.StdEncoding.EncodeToString(list) + `"`
}

// Line returns an HTTPS record as a line of a zone file.
func Line(owner, value string) string {
	return fmt.Sprintf("%s. %d IN HTTPS %s", owner, RecordTTL, value)
}
