package main

import (
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"headgate/internal/plan"
)

// isStream reports whether an argument of explain means a TCP or UDP proxy.
func isStream(address string) bool {
	return strings.HasPrefix(address, "tcp://") || strings.HasPrefix(address, "udp://")
}

// explainStream tells what becomes of a connection, or of a session of datagrams.
func explainStream(cmd *cobra.Command, address, from, file, output string) error {
	q, err := parseStream(address, from)
	if err != nil {
		return err
	}
	_, documents, err := readDocuments(cmd, file)
	if err != nil {
		return err
	}
	p, problems := loadPlan(documents, "")
	if len(problems) > 0 {
		return printProblems(cmd, problems)
	}
	defer p.Retire(nil)
	e := p.ExplainStream(q)
	if len(p.Config().Discovery.Docker) > 0 {
		e.Notes = append(e.Notes, "proxies discovered from containers are not included; run headgate status to see them")
	}
	if output == "json" {
		return writeJSON(cmd, e)
	}
	_, err = io.WriteString(cmd.OutOrStdout(), e.Text())
	return err
}

// parseStream reads tcp://host:port.
func parseStream(address, from string) (q plan.StreamQuestion, err error) {
	scheme, rest, _ := strings.Cut(address, "://")
	host, port, err := net.SplitHostPort(strings.TrimSuffix(rest, "/"))
	number, nerr := strconv.ParseUint(port, 10, 16)
	if err != nil || nerr != nil || number == 0 {
		return q, usage("invalid address %q: expected an address like tcp://db.example.com:5432", address)
	}
	q = plan.StreamQuestion{Protocol: scheme, Host: host, Port: uint16(number)}
	if q.From, err = netip.ParseAddr(from); err != nil {
		return q, usage("invalid client address %q: expected an address like 192.0.2.1", from)
	}
	return q, nil
}
