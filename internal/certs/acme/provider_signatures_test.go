package acme

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// TestRequestsToAWSAreSignedAsPublished compares with the test suite that AWS
// publishes for Signature Version 4.
func TestRequestsToAWSAreSignedAsPublished(t *testing.T) {
	t.Parallel()
	signer := awsSigner{
		key: "AKIDEXAMPLE", secret: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", region: "us-east-1", service: "service",
		now: func() time.Time { return time.Date(2015, 8, 30, 12, 36, 0, 0, time.UTC) },
	}
	for _, test := range []struct{ name, method, url, contentType, body, signed, want string }{
		{"get-vanilla", "GET", "https://example.amazonaws.com/", "", "", "host;x-amz-date", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
		{"get-vanilla-query-order-key-case", "GET", "https://example.amazonaws.com/?Param2=value2&Param1=value1", "", "", "host;x-amz-date", "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
		{"post-vanilla", "POST", "https://example.amazonaws.com/", "", "", "host;x-amz-date", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
		{"post-x-www-form-urlencoded", "POST", "https://example.amazonaws.com/", "application/x-www-form-urlencoded", "Param1=value1", "content-type;host;x-amz-date", "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"},
	} {
		req, err := http.NewRequest(test.method, test.url, strings.NewReader(test.body))
		if err != nil {
			t.Fatal(err)
		}
		if test.contentType != "" {
			req.Header.Set("Content-Type", test.contentType)
		}
		signer.sign(req, []byte(test.body))
		want := "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=" + test.signed + ", Signature=" + test.want
		if got := req.Header.Get("Authorization"); got != want {
			t.Errorf("%s: got\n%s, want\n%s", test.name, got, want)
		}
	}
}

// TestRequestsToOVHAreSignedAsPublished compares with the example of its guide.
func TestRequestsToOVHAreSignedAsPublished(t *testing.T) {
	t.Parallel()
	p := &ovh{secret: "EXEgWIz07P0HYwtQDs7cNIqCiQaWSuHF", consumer: "MtSwSrPpNjqfVSmJhLbPyr2i45lSwPU1"}
	const want = "$1$d3705e8afb27a0d2970a322b96550abfc67bb798"
	if got := p.signature("GET", "https://eu.api.ovh.com/1.0/domains/", "", 1366560945); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func accountKey(t *testing.T) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// accountFile returns the file of a service account's key.
func accountFile(t *testing.T, key *rsa.PrivateKey, tokenURI string) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	file, err := json.Marshal(map[string]string{
		"type": "service_account", "project_id": "p1", "private_key_id": "k1", "client_email": "dns@p1.iam.gserviceaccount.com", "token_uri": tokenURI,
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(file)
}

// TestGoogleIsAskedWithASignedStatement checks the statement as the token endpoint
// does, and every request of a value written and removed.
func TestGoogleIsAskedWithASignedStatement(t *testing.T) {
	t.Parallel()
	key := accountKey(t)
	const zones, set = "/projects/p1/managedZones", "/projects/p1/managedZones/z1/rrsets?name=_acme-challenge.example.com.&type=TXT"
	const foundZone = `{"managedZones":[{"name":"z0","visibility":"private"},{"name":"z1","visibility":"public"}]}`
	want := []exchanged{
		{"GET " + zones + "?dnsName=example.com.", 200, foundZone},
		{"GET " + set, 200, `{"rrsets":[]}`},
		{"GET " + zones + "?dnsName=example.com.", 200, foundZone},
		{"POST " + zones + `/z1/changes {"additions":[{"name":"_acme-challenge.example.com.","type":"TXT","ttl":60,"rrdatas":["\"v1\""]}]}`, 200, `{"id":"1","status":"pending"}`},
		{"GET " + zones + "/z1/changes/1", 200, `{"id":"1","status":"done"}`},
		{"GET " + zones + "?dnsName=example.com.", 200, foundZone},
		{"GET " + set, 200, `{"rrsets":[{"name":"_acme-challenge.example.com.","type":"TXT","ttl":99,"rrdatas":["\"v1\""]}]}`},
		{"GET " + zones + "?dnsName=example.com.", 200, foundZone},
		{"POST " + zones + `/z1/changes {"deletions":[{"name":"_acme-challenge.example.com.","type":"TXT","ttl":99,"rrdatas":["\"v1\""]}]}`, 200, `{"id":"2","status":"done"}`},
	}
	seen, tokens := 0, 0
	var server *httptest.Server
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/token" {
			tokens++
			if got := r.FormValue("grant_type"); got != "urn:ietf:params:oauth:grant-type:jwt-bearer" {
				t.Errorf("the grant is %q", got)
			}
			checkStatement(t, r.FormValue("assertion"), &key.PublicKey, server.URL+"/token")
			io.WriteString(w, `{"access_token":"t1","expires_in":3600,"token_type":"Bearer"}`)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if seen >= len(want) {
			t.Errorf("one request too many: %s %s", r.Method, r.RequestURI)
			return
		}
		if got := strings.TrimSpace(r.Method + " " + r.RequestURI + " " + string(body)); got != want[seen].request {
			t.Errorf("request %d is\n%s, want\n%s", seen, got, want[seen].request)
		}
		if got := r.Header.Get("Authorization"); got != "Bearer t1" {
			t.Errorf("Authorization is %q", got)
		}
		io.WriteString(w, want[seen].answer)
		seen++
	}))
	defer server.Close()
	p, err := newProvider(&DNS{Provider: "google", Credentials: map[string]string{anEndpoint: server.URL, "service_account": accountFile(t, key, server.URL+"/token")}})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.present(t.Context(), "example.com", "_acme-challenge.example.com", "v1"); err != nil {
		t.Fatal(err)
	}
	if err := p.cleanUp(t.Context(), "example.com", "_acme-challenge.example.com", "v1"); err != nil {
		t.Fatal(err)
	}
	if seen != len(want) || tokens != 1 {
		t.Errorf("%d requests and %d tokens, want %d and 1", seen, tokens, len(want))
	}
}

func checkStatement(t *testing.T, statement string, key *rsa.PublicKey, audience string) {
	parts := strings.Split(statement, ".")
	if len(parts) != 3 {
		t.Errorf("the statement has %d parts", len(parts))
		return
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil || rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], signature) != nil {
		t.Error("the statement is not signed by the account")
	}
	var claims struct {
		Iss, Scope, Aud string
		Iat, Exp        int64
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(text, &claims) != nil {
		t.Errorf("the claims cannot be read: %s", text)
	}
	if claims.Iss != "dns@p1.iam.gserviceaccount.com" || claims.Aud != audience || !strings.HasSuffix(claims.Scope, "/ndev.clouddns.readwrite") || claims.Exp-claims.Iat != 3600 {
		t.Errorf("the claims are %s", text)
	}
}

// TestAHetznerActionThatFailsIsTold makes the action fail that was begun well.
func TestAHetznerActionThatFailsIsTold(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			io.WriteString(w, `{"action":{"id":1,"status":"running","error":null}}`)
			return
		}
		io.WriteString(w, `{"action":{"id":1,"status":"error","error":{"code":"action_failed","message":"Action failed"}}}`)
	}))
	defer server.Close()
	p, err := newProvider(&DNS{Provider: "hetzner", Credentials: map[string]string{"api_token": "x", anEndpoint: server.URL}})
	if err != nil {
		t.Fatal(err)
	}
	err = p.present(t.Context(), "example.com", "_acme-challenge.example.com", "v1")
	if err == nil || !strings.Contains(err.Error(), "action_failed: Action failed") {
		t.Errorf("got %v", err)
	}
}

// TestARefusalSaysWhatToDo tells wrong credentials, missing permissions, another
// account's zone and a wrong clock apart.
func TestARefusalSaysWhatToDo(t *testing.T) {
	t.Parallel()
	answer := func(status int, text string) error { return &statusError{status, text} }
	for _, test := range []struct {
		err  error
		want string
	}{
		{answer(401, "Unauthorized"), "wrong, have expired or were revoked"},
		{answer(400, `{"status":"ERROR","message":"Invalid API key. (002)"}`), "wrong, have expired or were revoked"},
		{answer(403, `<Code>SignatureDoesNotMatch</Code>`), "wrong, have expired or were revoked"},
		{answer(403, `{"class":"Client::Forbidden","message":"This credential is not valid"}`), "wrong, have expired or were revoked"},
		{errors.New("name server refuses the update of example.com: " + dns.RcodeToString[dns.RcodeBadKey]), "wrong, have expired or were revoked"},
		{answer(403, "AccessDenied"), "may not change zone example.com"},
		{errors.New("name server refuses the update of example.com: REFUSED"), "may not change zone example.com"},
		{noZone("example.com", "not there"), "has no zone example.com"},
		{errors.New("name server refuses the update of example.com: NOTAUTH"), "has no zone example.com"},
		{errors.New("update: BADTIME"), "clock"},
		{answer(429, "slow down"), "try again"},
		{answer(503, "away"), "try again"},
		{errors.New("connection refused"), "check the credentials"},
	} {
		if got := hintFor(test.err, &DNS{Provider: "some"}, "example.com"); !strings.Contains(got, test.want) {
			t.Errorf("%v: got the hint %q, want %q", test.err, got, test.want)
		}
	}
}
