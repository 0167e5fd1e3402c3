package accesslog

import (
	"crypto/tls"
	"net/netip"
	"strconv"
	"strings"

	"headgate/internal/exchange"
)

// appendSession appends the line of a session as a JSON object. Fields that do not
// apply are left out.
func appendSession(b []byte, p *exchange.Session, c *clock) []byte {
	b = append(b, `{"time":"`...)
	b = c.appendISO(b, p.Start)
	b = append(b, `","client_ip":"`...)
	b = appendAddr(b, p.Client)
	b = append(b, `","client_port":`...)
	b = strconv.AppendInt(b, int64(p.Client.Port()), 10)
	b = append(b, `,"peer":"`...)
	b = append(appendAddr(b, p.Peer), '"')
	b = appendText(append(b, `,"proto":`...), p.Protocol, maxMethod)
	b = appendOptional(b, `,"server_name":`, p.Name, maxHost)
	if p.TLSVersion != 0 {
		b = appendText(append(b, `,"tls_version":`...), tls.VersionName(p.TLSVersion), maxName)
	}
	b = appendOptional(b, `,"client_cert_subject":`, p.ClientSubject, maxName)
	b = appendOptional(b, `,"reason":`, p.Reason.String(), maxName)
	b = appendOptional(b, `,"cause":`, p.Cause, maxCause)
	b = appendOptional(b, `,"proxy":`, p.Proxy, maxName)
	b = appendOptional(b, `,"server":`, p.Server, maxName)
	if p.Attempts > 0 {
		b = strconv.AppendInt(append(b, `,"attempts":`...), int64(p.Attempts), 10)
	}
	b = strconv.AppendInt(append(b, `,"bytes_sent":`...), p.Sent, 10)
	b = strconv.AppendInt(append(b, `,"bytes_received":`...), p.Received, 10)
	b = appendMillis(append(b, `,"duration_ms":`...), p.End-p.Start)
	if p.Connected > 0 {
		b = appendMillis(append(b, `,"connect_ms":`...), p.Connected-p.Start)
	}
	return append(b, "}\n"...)
}

// appendCombinedSession appends the line of a session in the combined form, with
// the proxy in the place of a path.
func appendCombinedSession(b []byte, p *exchange.Session, c *clock) []byte {
	b = appendAddr(b, p.Client)
	b = append(b, " - - ["...)
	b = c.appendCommon(b, p.Start)
	b = append(b, `] "`...)
	b = appendQuoted(b, strings.ToUpper(p.Protocol)+" "+p.Proxy, maxName)
	b = append(b, `" `...)
	status := 200
	if p.Reason != exchange.None {
		status = p.Reason.Status()
	}
	b = strconv.AppendInt(b, int64(status), 10)
	b = append(b, ' ')
	b = strconv.AppendInt(b, p.Sent, 10)
	return append(b, " \"-\" \"-\"\n"...)
}

func appendAddr(b []byte, a netip.AddrPort) []byte {
	if !a.IsValid() {
		return append(b, '-')
	}
	return a.Addr().Unmap().AppendTo(b)
}
