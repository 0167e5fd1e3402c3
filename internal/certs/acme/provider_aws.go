package acme

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// route53 reads and writes sets by the API of Amazon Route 53, version 2013-04-01.
type route53 struct {
	base, zoneID string
	sign         awsSigner

	// what was read last: the API requires the whole set to remove it
	set route53Set
}

// route53Set is a set of records as the API writes it.
type route53Set struct {
	Name   string
	Type   string
	TTL    int
	Values []string `xml:"ResourceRecords>ResourceRecord>Value"`
}

func openRoute53(d *DNS) (provider, error) {
	c := d.Credentials
	p := &route53{
		base:   newAPI(d, "https://route53.amazonaws.com").base + "/2013-04-01",
		zoneID: c["hosted_zone_id"],
		sign:   awsSigner{key: c["access_key_id"], secret: c["secret_access_key"], token: c["session_token"], region: "us-east-1", service: "route53", now: time.Now},
	}
	return newSetWriter(p), nil
}

// route53Namespace is that of the documents of the API.
const route53Namespace = "https://route53.amazonaws.com/doc/2013-04-01/"

func (p *route53) request(ctx context.Context, method, path string, in, out any) error {
	var body []byte
	if in != nil {
		written, err := xml.Marshal(in)
		if err != nil {
			return err
		}
		body = append([]byte(xml.Header), written...)
	}
	req, err := http.NewRequestWithContext(ctx, method, p.base+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if in != nil {
		req.Header.Set("Content-Type", "text/xml")
	}
	p.sign.sign(req, body)
	answer, err := call(req)
	if err != nil {
		return err
	}
	if err := xml.Unmarshal(answer, out); err != nil {
		return fmt.Errorf("%s %s answers what cannot be read: %w", method, req.URL.Path, err)
	}
	return nil
}

// hosted returns the path of the public zone with a name.
func (p *route53) hosted(ctx context.Context, zone string) (string, error) {
	if p.zoneID != "" {
		return "/hostedzone/" + url.PathEscape(p.zoneID), nil
	}
	var found struct {
		Zones []struct {
			ID      string `xml:"Id"`
			Name    string
			Private bool `xml:"Config>PrivateZone"`
		} `xml:"HostedZones>HostedZone"`
	}
	if err := p.request(ctx, http.MethodGet, "/hostedzonesbyname?dnsname="+url.QueryEscape(zone), nil, &found); err != nil {
		return "", err
	}
	for _, z := range found.Zones {
		if z.Name == zone+"." && !z.Private {
			return "/hostedzone/" + url.PathEscape(strings.TrimPrefix(z.ID, "/hostedzone/")), nil
		}
	}
	return "", noZone(zone, "the account has no public hosted zone with this name; name another with hosted_zone_id")
}

func fullName(zone, sub string) string {
	if sub == "@" {
		return zone + "."
	}
	return sub + "." + zone + "."
}

func (p *route53) read(ctx context.Context, zone, sub string) ([]string, error) {
	hosted, err := p.hosted(ctx, zone)
	if err != nil {
		return nil, err
	}
	p.set = route53Set{Name: fullName(zone, sub), Type: "TXT", TTL: recordTTL}
	var found struct {
		Sets []route53Set `xml:"ResourceRecordSets>ResourceRecordSet"`
	}
	if err := p.request(ctx, http.MethodGet, hosted+"/rrset?maxitems=1&name="+url.QueryEscape(p.set.Name)+"&type=TXT", nil, &found); err != nil {
		return nil, err
	}
	if len(found.Sets) > 0 && strings.EqualFold(found.Sets[0].Name, p.set.Name) && found.Sets[0].Type == "TXT" {
		p.set = found.Sets[0]
	}
	return unquoted(p.set.Values), nil
}

// route53Change is a request to change a set.
type route53Change struct {
	XMLName   xml.Name   `xml:"ChangeResourceRecordSetsRequest"`
	Namespace string     `xml:"xmlns,attr"`
	Action    string     `xml:"ChangeBatch>Changes>Change>Action"`
	Set       route53Set `xml:"ChangeBatch>Changes>Change>ResourceRecordSet"`
}

func (p *route53) write(ctx context.Context, zone, _ string, values []string) error {
	hosted, err := p.hosted(ctx, zone)
	if err != nil {
		return err
	}
	change := route53Change{Namespace: route53Namespace, Action: "UPSERT"}
	change.Set = p.set
	change.Set.Values = quoted(values)
	if len(values) == 0 {
		change.Action, change.Set.Values = "DELETE", p.set.Values
	}
	var info struct {
		ID     string `xml:"ChangeInfo>Id"`
		Status string `xml:"ChangeInfo>Status"`
	}
	if err := p.request(ctx, http.MethodPost, hosted+"/rrset/", change, &info); err != nil {
		return err
	}
	return settled(ctx, func() (bool, error) {
		if info.Status == "INSYNC" {
			return true, nil
		}
		return false, p.request(ctx, http.MethodGet, "/change/"+url.PathEscape(strings.TrimPrefix(info.ID, "/change/")), nil, &info)
	})
}

// awsSigner signs requests to AWS (Signature Version 4).
type awsSigner struct {
	key, secret, token string
	region, service    string
	now                func() time.Time
}

// sign adds the headers of a signature. Host, the time, and every header that the
// request has are signed. The path has to be one that needs no escapes.
func (s awsSigner) sign(req *http.Request, body []byte) {
	now := s.now().UTC()
	stamp, day := now.Format("20060102T150405Z"), now.Format("20060102")
	req.Header.Set("X-Amz-Date", stamp)
	if s.token != "" {
		req.Header.Set("X-Amz-Security-Token", s.token)
	}
	headers := []string{"host:" + req.URL.Host}
	for name := range req.Header {
		headers = append(headers, strings.ToLower(name)+":"+strings.TrimSpace(req.Header.Get(name)))
	}
	slices.Sort(headers)
	names := make([]string, len(headers))
	for i, h := range headers {
		names[i], _, _ = strings.Cut(h, ":")
	}
	signed := strings.Join(names, ";")
	path := req.URL.EscapedPath()
	if path == "" {
		path = "/"
	}
	// Encode sorts by name; a space is %20 here.
	query := strings.ReplaceAll(req.URL.Query().Encode(), "+", "%20")
	canonical := strings.Join([]string{req.Method, path, query, strings.Join(headers, "\n") + "\n", signed, hexSum(body)}, "\n")
	scope := day + "/" + s.region + "/" + s.service + "/aws4_request"
	key := []byte("AWS4" + s.secret)
	for _, part := range []string{day, s.region, s.service, "aws4_request"} {
		key = hmacSum(key, part)
	}
	signature := hex.EncodeToString(hmacSum(key, "AWS4-HMAC-SHA256\n"+stamp+"\n"+scope+"\n"+hexSum([]byte(canonical))))
	req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+s.key+"/"+scope+", SignedHeaders="+signed+", Signature="+signature)
}

func hexSum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func hmacSum(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}
