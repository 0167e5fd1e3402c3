// Code generated from the table of the API; DO NOT EDIT.

package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/url"
)

// AddPasskey: PUT /session/passkeys. Adds the passkey that a browser has created.
func (c *Client) AddPasskey(ctx context.Context, in *NewPasskeyAnswer, options ...Option) (*Passkey, error) {
	return result[Passkey](ctx, c, "PUT", "/session/passkeys", in, options)
}

// AdoptStore: POST /store/adopt. Replaces this node's copy with the state of a shared store that
// was set back, for example by a restored backup. Newer changes in the copy are lost.
func (c *Client) AdoptStore(ctx context.Context, in *NodeInput, options ...Option) (*Store, error) {
	return result[Store](ctx, c, "POST", "/store/adopt", in, options)
}

// BanAddress: POST /banned. Bans an address or a network at all proxies for a while. An IPv6
// address is banned with its /64.
func (c *Client) BanAddress(ctx context.Context, in *BanInput, options ...Option) (*BannedAddress, error) {
	return result[BannedAddress](ctx, c, "POST", "/banned", in, options)
}

// ChangePassword: PUT /session/password. Changes your password; all your sessions end.
func (c *Client) ChangePassword(ctx context.Context, in *PasswordInput, options ...Option) error {
	return c.Do(ctx, "PUT", "/session/password", in, nil, options...)
}

// CheckUpgrade: POST /upgrade/check. Checks whether the binary now on disk can replace the
// process: runs it with the current configuration and compares versions. Nothing is changed.
func (c *Client) CheckUpgrade(ctx context.Context, options ...Option) (*UpgradeCheck, error) {
	return result[UpgradeCheck](ctx, c, "POST", "/upgrade/check", struct{}{}, options)
}

// Confirm: POST /confirm. Confirms the change that waits for confirmation.
func (c *Client) Confirm(ctx context.Context, in *ConfirmInput, options ...Option) (*Confirm, error) {
	return result[Confirm](ctx, c, "POST", "/confirm", in, options)
}

// CreateACME: POST /acme. Creates an ACME entry. If-Match is the ETag of the configuration.
// Query parameters: confirm_within, why.
func (c *Client) CreateACME(ctx context.Context, in *ACMEObject, options ...Option) (*ACMEObject, error) {
	return result[ACMEObject](ctx, c, "POST", "/acme", in, options)
}

// CreateBan: POST /bans. Creates a ban rule. If-Match is the ETag of the configuration. Query
// parameters: confirm_within, why.
func (c *Client) CreateBan(ctx context.Context, in *BanObject, options ...Option) (*BanObject, error) {
	return result[BanObject](ctx, c, "POST", "/bans", in, options)
}

// CreateCertificate: POST /certificates. Creates a certificate. If-Match is the ETag of the
// configuration. Query parameters: confirm_within, why.
func (c *Client) CreateCertificate(ctx context.Context, in *CertificateObject, options ...Option) (*CertificateObject, error) {
	return result[CertificateObject](ctx, c, "POST", "/certificates", in, options)
}

// CreateGateLink: POST /gate/links. Creates a share link. Its address is in this response and
// never shown again.
func (c *Client) CreateGateLink(ctx context.Context, in *GateLink, options ...Option) (*GateLink, error) {
	return result[GateLink](ctx, c, "POST", "/gate/links", in, options)
}

// CreateGateOpening: POST /gate/openings. Opens the gate of a host to everyone for a limited
// time, for example while a provider is down. Servers get no identity headers for clients
// without a session.
func (c *Client) CreateGateOpening(ctx context.Context, in *OpeningInput, options ...Option) (*Opening, error) {
	return result[Opening](ctx, c, "POST", "/gate/openings", in, options)
}

// CreateGateToken: POST /gate/tokens. Creates a token for an application. Its text is in this
// response and never shown again.
func (c *Client) CreateGateToken(ctx context.Context, in *GateToken, options ...Option) (*GateToken, error) {
	return result[GateToken](ctx, c, "POST", "/gate/tokens", in, options)
}

// CreateList: POST /lists. Creates a list. If-Match is the ETag of the configuration. Query
// parameters: confirm_within, why.
func (c *Client) CreateList(ctx context.Context, in *ListObject, options ...Option) (*ListObject, error) {
	return result[ListObject](ctx, c, "POST", "/lists", in, options)
}

// CreateNotice: POST /notices. Creates a notice. If-Match is the ETag of the configuration.
// Query parameters: confirm_within, why.
func (c *Client) CreateNotice(ctx context.Context, in *NoticeObject, options ...Option) (*NoticeObject, error) {
	return result[NoticeObject](ctx, c, "POST", "/notices", in, options)
}

// CreatePairInvitation: POST /pair/invitations. Creates a token with which one machine can join
// the group, or the shared database, once and within an hour.
func (c *Client) CreatePairInvitation(ctx context.Context, in *InvitationInput, options ...Option) (*Invitation, error) {
	return result[Invitation](ctx, c, "POST", "/pair/invitations", in, options)
}

// CreatePerson: POST /people. Adds a person, who sets up credentials through an invitation.
func (c *Client) CreatePerson(ctx context.Context, in *Person, options ...Option) (*Person, error) {
	return result[Person](ctx, c, "POST", "/people", in, options)
}

// CreatePolicy: POST /policies. Creates a policy. If-Match is the ETag of the configuration.
// Query parameters: confirm_within, why.
func (c *Client) CreatePolicy(ctx context.Context, in *PolicyObject, options ...Option) (*PolicyObject, error) {
	return result[PolicyObject](ctx, c, "POST", "/policies", in, options)
}

// CreatePort: POST /ports. Creates a port. If-Match is the ETag of the configuration. Query
// parameters: confirm_within, why.
func (c *Client) CreatePort(ctx context.Context, in *PortObject, options ...Option) (*PortObject, error) {
	return result[PortObject](ctx, c, "POST", "/ports", in, options)
}

// CreateProxy: POST /proxies. Creates a proxy. If-Match is the ETag of the configuration. Query
// parameters: confirm_within, why.
func (c *Client) CreateProxy(ctx context.Context, in *ProxyObject, options ...Option) (*ProxyObject, error) {
	return result[ProxyObject](ctx, c, "POST", "/proxies", in, options)
}

// CreateSelfSignedCertificate: POST /certificates/self_signed. Creates a self-signed certificate
// and stores it.
func (c *Client) CreateSelfSignedCertificate(ctx context.Context, in *SelfSignedInput, options ...Option) (*StoredCertificate, error) {
	return result[StoredCertificate](ctx, c, "POST", "/certificates/self_signed", in, options)
}

// CreateStoreMigrate: POST /store/migrate. Brings the tables of the shared database to the
// newest version that this node's release knows. Refused while a node runs whose release could
// not use them afterwards.
func (c *Client) CreateStoreMigrate(ctx context.Context, in *NodeInput, options ...Option) (*StoreMigration, error) {
	return result[StoreMigration](ctx, c, "POST", "/store/migrate", in, options)
}

// CreateTCPProxy: POST /tcp_proxies. Creates a TCP proxy. If-Match is the ETag of the
// configuration. Query parameters: confirm_within, why.
func (c *Client) CreateTCPProxy(ctx context.Context, in *TCPProxyObject, options ...Option) (*TCPProxyObject, error) {
	return result[TCPProxyObject](ctx, c, "POST", "/tcp_proxies", in, options)
}

// CreateToken: POST /tokens. Creates a token. Its text is in this response and never shown
// again.
func (c *Client) CreateToken(ctx context.Context, in *Token, options ...Option) (*Token, error) {
	return result[Token](ctx, c, "POST", "/tokens", in, options)
}

// CreateUDPProxy: POST /udp_proxies. Creates a UDP proxy. If-Match is the ETag of the
// configuration. Query parameters: confirm_within, why.
func (c *Client) CreateUDPProxy(ctx context.Context, in *UDPProxyObject, options ...Option) (*UDPProxyObject, error) {
	return result[UDPProxyObject](ctx, c, "POST", "/udp_proxies", in, options)
}

// CreateUser: POST /users. Creates a user.
func (c *Client) CreateUser(ctx context.Context, in *User, options ...Option) (*User, error) {
	return result[User](ctx, c, "POST", "/users", in, options)
}

// CreateWebhook: POST /webhooks. Creates a webhook. If-Match is the ETag of the configuration.
// Query parameters: confirm_within, why.
func (c *Client) CreateWebhook(ctx context.Context, in *WebhookObject, options ...Option) (*WebhookObject, error) {
	return result[WebhookObject](ctx, c, "POST", "/webhooks", in, options)
}

// DeleteACME: DELETE /acme/{name}. Deletes an ACME entry that no other object refers to. Query
// parameters: confirm_within, why.
func (c *Client) DeleteACME(ctx context.Context, name string, options ...Option) error {
	return c.Do(ctx, "DELETE", "/acme/"+url.PathEscape(name), nil, nil, options...)
}

// DeleteAccessLogSettings: DELETE /settings/access_log. Resets the access log to the defaults.
// Query parameters: confirm_within, why.
func (c *Client) DeleteAccessLogSettings(ctx context.Context, options ...Option) error {
	return c.Do(ctx, "DELETE", "/settings/access_log", nil, nil, options...)
}

// DeleteAdminSettings: DELETE /settings/admin. Resets the admin listener to the defaults. Query
// parameters: confirm_within, why.
func (c *Client) DeleteAdminSettings(ctx context.Context, options ...Option) error {
	return c.Do(ctx, "DELETE", "/settings/admin", nil, nil, options...)
}

// DeleteBan: DELETE /bans/{name}. Deletes a ban rule that no other object refers to. Query
// parameters: confirm_within, why.
func (c *Client) DeleteBan(ctx context.Context, name string, options ...Option) error {
	return c.Do(ctx, "DELETE", "/bans/"+url.PathEscape(name), nil, nil, options...)
}

// DeleteCDNNetworksSettings: DELETE /settings/cdn_networks. Resets the networks of CDNs to the
// defaults. Query parameters: confirm_within, why.
func (c *Client) DeleteCDNNetworksSettings(ctx context.Context, options ...Option) error {
	return c.Do(ctx, "DELETE", "/settings/cdn_networks", nil, nil, options...)
}

// DeleteCertificate: DELETE /certificates/{name}. Deletes a certificate that no other object
// refers to. Query parameters: confirm_within, why.
func (c *Client) DeleteCertificate(ctx context.Context, name string, options ...Option) error {
	return c.Do(ctx, "DELETE", "/certificates/"+url.PathEscape(name), nil, nil, options...)
}

// DeleteDefaultsSettings: DELETE /settings/defaults. Resets the defaults to the defaults. Query
// parameters: confirm_within, why.
func (c *Client) DeleteDefaultsSettings(ctx context.Context, options ...Option) error {
	return c.Do(ctx, "DELETE", "/settings/defaults", nil, nil, options...)
}

// DeleteDiscoverySettings: DELETE /settings/discovery. Resets the discovery to the defaults.
// Query parameters: confirm_within, why.
func (c *Client) DeleteDiscoverySettings(ctx context.Context, options ...Option) error {
	return c.Do(ctx, "DELETE", "/settings/discovery", nil, nil, options...)
}

// DeleteGateLink: DELETE /gate/links/{name}. Revokes a share link, including for browsers that
// have already opened it.
func (c *Client) DeleteGateLink(ctx context.Context, name string, options ...Option) error {
	return c.Do(ctx, "DELETE", "/gate/links/"+url.PathEscape(name), nil, nil, options...)
}

// DeleteGateOpening: DELETE /gate/openings/{name}. Closes the gate of a host again.
func (c *Client) DeleteGateOpening(ctx context.Context, name string, options ...Option) error {
	return c.Do(ctx, "DELETE", "/gate/openings/"+url.PathEscape(name), nil, nil, options...)
}

// DeleteGateSession: DELETE /gate/sessions/{name}. Ends a session at all its applications. Open
// WebSockets and other long exchanges are closed.
func (c *Client) DeleteGateSession(ctx context.Context, name string, options ...Option) error {
	return c.Do(ctx, "DELETE", "/gate/sessions/"+url.PathEscape(name), nil, nil, options...)
}

// DeleteGateSessions: DELETE /gate/sessions. Ends all sessions of a person. Open WebSockets and
// other long exchanges are closed. The person can sign in again. Query parameters: person.
func (c *Client) DeleteGateSessions(ctx context.Context, options ...Option) (*Ended, error) {
	return result[Ended](ctx, c, "DELETE", "/gate/sessions", nil, options)
}

// DeleteGateToken: DELETE /gate/tokens/{name}. Revokes a token of an application. Connections
// that use it are closed within two seconds on all machines.
func (c *Client) DeleteGateToken(ctx context.Context, name string, options ...Option) error {
	return c.Do(ctx, "DELETE", "/gate/tokens/"+url.PathEscape(name), nil, nil, options...)
}

// DeleteGeoSettings: DELETE /settings/geo. Resets the geo databases to the defaults. Query
// parameters: confirm_within, why.
func (c *Client) DeleteGeoSettings(ctx context.Context, options ...Option) error {
	return c.Do(ctx, "DELETE", "/settings/geo", nil, nil, options...)
}

// DeleteList: DELETE /lists/{name}. Deletes a list that no other object refers to. Query
// parameters: confirm_within, why.
func (c *Client) DeleteList(ctx context.Context, name string, options ...Option) error {
	return c.Do(ctx, "DELETE", "/lists/"+url.PathEscape(name), nil, nil, options...)
}

// DeleteNode: DELETE /nodes/{name}. Removes a node that no longer runs, so that other nodes do
// not wait for it.
func (c *Client) DeleteNode(ctx context.Context, name string, options ...Option) error {
	return c.Do(ctx, "DELETE", "/nodes/"+url.PathEscape(name), nil, nil, options...)
}

// DeleteNotice: DELETE /notices/{name}. Deletes a notice that no other object refers to. Query
// parameters: confirm_within, why.
func (c *Client) DeleteNotice(ctx context.Context, name string, options ...Option) error {
	return c.Do(ctx, "DELETE", "/notices/"+url.PathEscape(name), nil, nil, options...)
}

// DeletePairMember: DELETE /pair/members/{name}. Revokes the credential of a machine and removes
// it from the group.
func (c *Client) DeletePairMember(ctx context.Context, name string, options ...Option) error {
	return c.Do(ctx, "DELETE", "/pair/members/"+url.PathEscape(name), nil, nil, options...)
}

// DeletePerson: DELETE /people/{name}. Removes a person and ends their sessions.
func (c *Client) DeletePerson(ctx context.Context, name string, options ...Option) error {
	return c.Do(ctx, "DELETE", "/people/"+url.PathEscape(name), nil, nil, options...)
}

// DeletePersonInvitation: DELETE /people/{name}/invitation. Revokes the invitation link of a
// person.
func (c *Client) DeletePersonInvitation(ctx context.Context, name string, options ...Option) error {
	return c.Do(ctx, "DELETE", "/people/"+url.PathEscape(name)+"/invitation", nil, nil, options...)
}

// DeletePolicy: DELETE /policies/{name}. Deletes a policy that no other object refers to. Query
// parameters: confirm_within, why.
func (c *Client) DeletePolicy(ctx context.Context, name string, options ...Option) error {
	return c.Do(ctx, "DELETE", "/policies/"+url.PathEscape(name), nil, nil, options...)
}

// DeletePort: DELETE /ports/{name}. Deletes a port that no other object refers to. Query
// parameters: confirm_within, why.
func (c *Client) DeletePort(ctx context.Context, name string, options ...Option) error {
	return c.Do(ctx, "DELETE", "/ports/"+url.PathEscape(name), nil, nil, options...)
}

// DeleteProxy: DELETE /proxies/{name}. Deletes a proxy that no other object refers to. Query
// parameters: confirm_within, why.
func (c *Client) DeleteProxy(ctx context.Context, name string, options ...Option) error {
	return c.Do(ctx, "DELETE", "/proxies/"+url.PathEscape(name), nil, nil, options...)
}

// DeleteSession: DELETE /sessions/{name}. Ends a session: any session for an admin, otherwise
// one of your own.
func (c *Client) DeleteSession(ctx context.Context, name string, options ...Option) error {
	return c.Do(ctx, "DELETE", "/sessions/"+url.PathEscape(name), nil, nil, options...)
}

// DeleteSignInSettings: DELETE /settings/sign_in. Resets the sign-in for applications to the
// defaults. Query parameters: confirm_within, why.
func (c *Client) DeleteSignInSettings(ctx context.Context, options ...Option) error {
	return c.Do(ctx, "DELETE", "/settings/sign_in", nil, nil, options...)
}

// DeleteStoredCertificate: DELETE /stored_certificates/{name}. Deletes a certificate that the
// configuration does not use.
func (c *Client) DeleteStoredCertificate(ctx context.Context, name string, options ...Option) error {
	return c.Do(ctx, "DELETE", "/stored_certificates/"+url.PathEscape(name), nil, nil, options...)
}

// DeleteTCPProxy: DELETE /tcp_proxies/{name}. Deletes a TCP proxy that no other object refers
// to. Query parameters: confirm_within, why.
func (c *Client) DeleteTCPProxy(ctx context.Context, name string, options ...Option) error {
	return c.Do(ctx, "DELETE", "/tcp_proxies/"+url.PathEscape(name), nil, nil, options...)
}

// DeleteToken: DELETE /tokens/{name}. Revokes a token.
func (c *Client) DeleteToken(ctx context.Context, name string, options ...Option) error {
	return c.Do(ctx, "DELETE", "/tokens/"+url.PathEscape(name), nil, nil, options...)
}

// DeleteTracingSettings: DELETE /settings/tracing. Resets the tracing to the defaults. Query
// parameters: confirm_within, why.
func (c *Client) DeleteTracingSettings(ctx context.Context, options ...Option) error {
	return c.Do(ctx, "DELETE", "/settings/tracing", nil, nil, options...)
}

// DeleteUDPProxy: DELETE /udp_proxies/{name}. Deletes a UDP proxy that no other object refers
// to. Query parameters: confirm_within, why.
func (c *Client) DeleteUDPProxy(ctx context.Context, name string, options ...Option) error {
	return c.Do(ctx, "DELETE", "/udp_proxies/"+url.PathEscape(name), nil, nil, options...)
}

// DeleteUpstreamsSettings: DELETE /settings/upstreams. Resets the settings for upstreams to the
// defaults. Query parameters: confirm_within, why.
func (c *Client) DeleteUpstreamsSettings(ctx context.Context, options ...Option) error {
	return c.Do(ctx, "DELETE", "/settings/upstreams", nil, nil, options...)
}

// DeleteUser: DELETE /users/{name}. Deletes a user and ends all sessions of the user.
func (c *Client) DeleteUser(ctx context.Context, name string, options ...Option) error {
	return c.Do(ctx, "DELETE", "/users/"+url.PathEscape(name), nil, nil, options...)
}

// DeleteUserTOTP: DELETE /users/{name}/totp. Removes the authenticator of a user who has lost
// it.
func (c *Client) DeleteUserTOTP(ctx context.Context, name string, options ...Option) (*User, error) {
	return result[User](ctx, c, "DELETE", "/users/"+url.PathEscape(name)+"/totp", nil, options)
}

// DeleteWebhook: DELETE /webhooks/{name}. Deletes a webhook that no other object refers to.
// Query parameters: confirm_within, why.
func (c *Client) DeleteWebhook(ctx context.Context, name string, options ...Option) error {
	return c.Do(ctx, "DELETE", "/webhooks/"+url.PathEscape(name), nil, nil, options...)
}

// DiffRevisions: GET /revisions/{number}/diff/{other}. Returns the differences from this
// revision to another one, which may be `current`.
func (c *Client) DiffRevisions(ctx context.Context, number string, other string, options ...Option) (*ConfigDifference, error) {
	return result[ConfigDifference](ctx, c, "GET", "/revisions/"+url.PathEscape(number)+"/diff/"+url.PathEscape(other), nil, options)
}

// DisableServer: POST /servers/disable. Sends no requests to a server; active requests finish.
// The configuration does not change. The state persists across changes and restarts.
func (c *Client) DisableServer(ctx context.Context, in *HoldInput, options ...Option) (*HeldServer, error) {
	return result[HeldServer](ctx, c, "POST", "/servers/disable", in, options)
}

// DrainNode: POST /nodes/{name}/drain. Drains a node: its /readyz answers 503, and its open HTTP
// connections end with their next response. Its ports stay open. The drain lasts until undrain,
// including across restarts.
func (c *Client) DrainNode(ctx context.Context, name string, in *NodeInput, options ...Option) (*Node, error) {
	return result[Node](ctx, c, "POST", "/nodes/"+url.PathEscape(name)+"/drain", in, options)
}

// DrainServer: POST /servers/drain. Sends no new clients to a server; clients with a sticky
// cookie for it stay. The configuration does not change. The state persists across changes and
// restarts.
func (c *Client) DrainServer(ctx context.Context, in *HoldInput, options ...Option) (*HeldServer, error) {
	return result[HeldServer](ctx, c, "POST", "/servers/drain", in, options)
}

// EditConfig: POST /config/edits. Applies several edits in one change. If-Match is the ETag of
// the configuration. Query parameters: confirm_within, why.
func (c *Client) EditConfig(ctx context.Context, in *EditsInput, options ...Option) (*Change, error) {
	return result[Change](ctx, c, "POST", "/config/edits", in, options)
}

// EnableServer: POST /servers/enable. Returns a drained or disabled server to service.
func (c *Client) EnableServer(ctx context.Context, in *HoldInput, options ...Option) (*HeldServer, error) {
	return result[HeldServer](ctx, c, "POST", "/servers/enable", in, options)
}

// Explain: POST /explain. Shows how a request would be handled: its route, the filters, the
// server. Nothing is sent. Only admins see the request headers that servers get.
func (c *Client) Explain(ctx context.Context, in *ExplainInput, options ...Option) (*Explanation, error) {
	return result[Explanation](ctx, c, "POST", "/explain", in, options)
}

// ExplainCache: POST /cache/explain. Shows how a request would be handled, and sends one GET to
// a server of the route to explain whether the cache stores the response, and why not. Nothing
// is stored, and a dry run sends nothing. Access control of the route applies as to the client
// that the input describes.
func (c *Client) ExplainCache(ctx context.Context, in *ExplainInput, options ...Option) (*Explanation, error) {
	return result[Explanation](ctx, c, "POST", "/cache/explain", in, options)
}

// ExplainStream: POST /explain/stream. Shows which TCP or UDP proxy would accept a connection,
// why, and to which server it would be forwarded. Nothing is sent.
func (c *Client) ExplainStream(ctx context.Context, in *ExplainStreamInput, options ...Option) (*StreamExplanation, error) {
	return result[StreamExplanation](ctx, c, "POST", "/explain/stream", in, options)
}

// ExportStoredCertificate: POST /stored_certificates/{name}/export. Returns a certificate with
// its private key: an uploaded one, or an ACME certificate selected by its name or a host.
func (c *Client) ExportStoredCertificate(ctx context.Context, name string, options ...Option) (*Export, error) {
	return result[Export](ctx, c, "POST", "/stored_certificates/"+url.PathEscape(name)+"/export", struct{}{}, options)
}

// FinishOIDC: PUT /session/oidc. Signs in with the response of the provider to the console's
// page.
func (c *Client) FinishOIDC(ctx context.Context, in *OidcInput, options ...Option) (*SessionStarted, error) {
	return result[SessionStarted](ctx, c, "PUT", "/session/oidc", in, options)
}

// FinishPasskeySignIn: PUT /session/passkey. Signs in with the answer of a passkey, which
// replaces the password and the code.
func (c *Client) FinishPasskeySignIn(ctx context.Context, in *PasskeyAnswer, options ...Option) (*SessionStarted, error) {
	return result[SessionStarted](ctx, c, "PUT", "/session/passkey", in, options)
}

// FinishTOTP: PUT /session/totp. Confirms the new authenticator with a code and returns the
// recovery codes, which are shown once.
func (c *Client) FinishTOTP(ctx context.Context, in *CodeInput, options ...Option) (*RecoveryCodes, error) {
	return result[RecoveryCodes](ctx, c, "PUT", "/session/totp", in, options)
}

// GetACME: GET /acme/{name}. Returns one ACME entry.
func (c *Client) GetACME(ctx context.Context, name string, options ...Option) (*ACMEObject, error) {
	return result[ACMEObject](ctx, c, "GET", "/acme/"+url.PathEscape(name), nil, options)
}

// GetAccessLogSettings: GET /settings/access_log. Returns the access log.
func (c *Client) GetAccessLogSettings(ctx context.Context, options ...Option) (*AccessLogObject, error) {
	return result[AccessLogObject](ctx, c, "GET", "/settings/access_log", nil, options)
}

// GetAddress: GET /addresses/{name}. Shows the lists and bans that contain an address, its
// country and its network.
func (c *Client) GetAddress(ctx context.Context, name string, options ...Option) (*Address, error) {
	return result[Address](ctx, c, "GET", "/addresses/"+url.PathEscape(name), nil, options)
}

// GetAdminSettings: GET /settings/admin. Returns the admin listener.
func (c *Client) GetAdminSettings(ctx context.Context, options ...Option) (*AdminObject, error) {
	return result[AdminObject](ctx, c, "GET", "/settings/admin", nil, options)
}

// GetBan: GET /bans/{name}. Returns one ban rule.
func (c *Client) GetBan(ctx context.Context, name string, options ...Option) (*BanObject, error) {
	return result[BanObject](ctx, c, "GET", "/bans/"+url.PathEscape(name), nil, options)
}

// GetBanRules: GET /banned/rules. Shows the clients that each ban rule has banned, or would have
// banned, since it was configured; and the networks that are never banned.
func (c *Client) GetBanRules(ctx context.Context, options ...Option) (*BanRules, error) {
	return result[BanRules](ctx, c, "GET", "/banned/rules", nil, options)
}

// GetCDNNetworksSettings: GET /settings/cdn_networks. Returns the networks of CDNs.
func (c *Client) GetCDNNetworksSettings(ctx context.Context, options ...Option) (*CDNNetworksObject, error) {
	return result[CDNNetworksObject](ctx, c, "GET", "/settings/cdn_networks", nil, options)
}

// GetCache: GET /cache. Shows the caches, and what they made of the requests of each route. The
// requests that only passed by are included. Query parameters: period, limit.
func (c *Client) GetCache(ctx context.Context, options ...Option) (*CacheState, error) {
	return result[CacheState](ctx, c, "GET", "/cache", nil, options)
}

// GetCacheEntries: GET /cache/entries. Lists the largest, most requested or oldest stored
// responses of this machine. Only admins see the values of query parameters. Query parameters:
// proxy, sort, limit.
func (c *Client) GetCacheEntries(ctx context.Context, options ...Option) (*CacheListing, error) {
	return result[CacheListing](ctx, c, "GET", "/cache/entries", nil, options)
}

// GetCertificate: GET /certificates/{name}. Returns one certificate.
func (c *Client) GetCertificate(ctx context.Context, name string, options ...Option) (*CertificateObject, error) {
	return result[CertificateObject](ctx, c, "GET", "/certificates/"+url.PathEscape(name), nil, options)
}

// GetComparison: GET /compare. Returns the progress of the comparison, and its report once it
// has ended.
func (c *Client) GetComparison(ctx context.Context, options ...Option) (*Comparison, error) {
	return result[Comparison](ctx, c, "GET", "/compare", nil, options)
}

// GetConfig: GET /config. Returns the configuration files as they are, with their secrets. With
// Accept: application/yaml, returns the text of one.
func (c *Client) GetConfig(ctx context.Context, options ...Option) (*Config, error) {
	return result[Config](ctx, c, "GET", "/config", nil, options)
}

// GetConfigSchema: GET /config/schema. Returns the JSON Schema of the configuration: every field
// with its help, default and limits.
func (c *Client) GetConfigSchema(ctx context.Context, options ...Option) (*json.RawMessage, error) {
	return result[json.RawMessage](ctx, c, "GET", "/config/schema", nil, options)
}

// GetCutover: GET /cutover. Returns the last cutover: which ports moved, whether it is pending,
// confirmed, reverted or returned, and what its watch has counted.
func (c *Client) GetCutover(ctx context.Context, options ...Option) (*Cutover, error) {
	return result[Cutover](ctx, c, "GET", "/cutover", nil, options)
}

// GetDefaultsSettings: GET /settings/defaults. Returns the defaults.
func (c *Client) GetDefaultsSettings(ctx context.Context, options ...Option) (*DefaultsObject, error) {
	return result[DefaultsObject](ctx, c, "GET", "/settings/defaults", nil, options)
}

// GetDiscoverySettings: GET /settings/discovery. Returns the discovery.
func (c *Client) GetDiscoverySettings(ctx context.Context, options ...Option) (*DiscoveryObject, error) {
	return result[DiscoveryObject](ctx, c, "GET", "/settings/discovery", nil, options)
}

// GetDiscoveryState: GET /discovery. Returns the state of discovery providers, and issues with
// the objects that they found. Query parameters: node.
func (c *Client) GetDiscoveryState(ctx context.Context, options ...Option) (*DiscoveryState, error) {
	return result[DiscoveryState](ctx, c, "GET", "/discovery", nil, options)
}

// GetGateState: GET /gate. Shows how people sign in: the sign-in host, the addresses to register
// at providers, and how many people, sessions and passkeys there are.
func (c *Client) GetGateState(ctx context.Context, options ...Option) (*GateAccess, error) {
	return result[GateAccess](ctx, c, "GET", "/gate", nil, options)
}

// GetGateToken: GET /gate/tokens/{name}. Returns one token of an application, without its text.
func (c *Client) GetGateToken(ctx context.Context, name string, options ...Option) (*GateToken, error) {
	return result[GateToken](ctx, c, "GET", "/gate/tokens/"+url.PathEscape(name), nil, options)
}

// GetGeoSettings: GET /settings/geo. Returns the geo databases.
func (c *Client) GetGeoSettings(ctx context.Context, options ...Option) (*GeoObject, error) {
	return result[GeoObject](ctx, c, "GET", "/settings/geo", nil, options)
}

// GetGeoState: GET /geo. Shows the databases of countries and networks, with what their licences
// ask to be shown.
func (c *Client) GetGeoState(ctx context.Context, options ...Option) (*GeoState, error) {
	return result[GeoState](ctx, c, "GET", "/geo", nil, options)
}

// GetList: GET /lists/{name}. Returns one list.
func (c *Client) GetList(ctx context.Context, name string, options ...Option) (*ListObject, error) {
	return result[ListObject](ctx, c, "GET", "/lists/"+url.PathEscape(name), nil, options)
}

// GetListState: GET /lists/{name}/state. Shows the state of a list: its entries, when it was
// loaded, and what is wrong with it.
func (c *Client) GetListState(ctx context.Context, name string, options ...Option) (*ListState, error) {
	return result[ListState](ctx, c, "GET", "/lists/"+url.PathEscape(name)+"/state", nil, options)
}

// GetNode: GET /nodes/{name}. Returns one node.
func (c *Client) GetNode(ctx context.Context, name string, options ...Option) (*Node, error) {
	return result[Node](ctx, c, "GET", "/nodes/"+url.PathEscape(name), nil, options)
}

// GetNotice: GET /notices/{name}. Returns one notice.
func (c *Client) GetNotice(ctx context.Context, name string, options ...Option) (*NoticeObject, error) {
	return result[NoticeObject](ctx, c, "GET", "/notices/"+url.PathEscape(name), nil, options)
}

// GetNoticeState: GET /notices/{name}/state. Returns the state of a notice, with the messages
// that are queued and those that could not be delivered.
func (c *Client) GetNoticeState(ctx context.Context, name string, options ...Option) (*QueueState, error) {
	return result[QueueState](ctx, c, "GET", "/notices/"+url.PathEscape(name)+"/state", nil, options)
}

// GetOpenAPI: GET /openapi.json. Returns the API as an OpenAPI 3.1 document.
func (c *Client) GetOpenAPI(ctx context.Context, options ...Option) (*json.RawMessage, error) {
	return result[json.RawMessage](ctx, c, "GET", "/openapi.json", nil, options)
}

// GetOrder: GET /orders/{name}. Returns one ACME certificate with the timeline of its last
// orders. The name is that of the certificate or of a host that it covers.
func (c *Client) GetOrder(ctx context.Context, name string, options ...Option) (*Order, error) {
	return result[Order](ctx, c, "GET", "/orders/"+url.PathEscape(name), nil, options)
}

// GetPair: GET /pair. Returns the role of this machine in its pair, the other machine, and how
// far the follower is behind.
func (c *Client) GetPair(ctx context.Context, options ...Option) (*PairState, error) {
	return result[PairState](ctx, c, "GET", "/pair", nil, options)
}

// GetPerson: GET /people/{name}. Returns one person.
func (c *Client) GetPerson(ctx context.Context, name string, options ...Option) (*Person, error) {
	return result[Person](ctx, c, "GET", "/people/"+url.PathEscape(name), nil, options)
}

// GetPolicy: GET /policies/{name}. Returns one policy.
func (c *Client) GetPolicy(ctx context.Context, name string, options ...Option) (*PolicyObject, error) {
	return result[PolicyObject](ctx, c, "GET", "/policies/"+url.PathEscape(name), nil, options)
}

// GetPort: GET /ports/{name}. Returns one port.
func (c *Client) GetPort(ctx context.Context, name string, options ...Option) (*PortObject, error) {
	return result[PortObject](ctx, c, "GET", "/ports/"+url.PathEscape(name), nil, options)
}

// GetProxy: GET /proxies/{name}. Returns one proxy.
func (c *Client) GetProxy(ctx context.Context, name string, options ...Option) (*ProxyObject, error) {
	return result[ProxyObject](ctx, c, "GET", "/proxies/"+url.PathEscape(name), nil, options)
}

// GetRevision: GET /revisions/{number}. Returns one revision with its configuration files.
func (c *Client) GetRevision(ctx context.Context, number string, options ...Option) (*Revision, error) {
	return result[Revision](ctx, c, "GET", "/revisions/"+url.PathEscape(number), nil, options)
}

// GetSeries: GET /series. Returns counters over time for charts: for all of HTTP, a proxy, or
// one of its servers. They start again with the process. Query parameters: proxy, tcp_proxy,
// udp_proxy, server, route, step, period, node.
func (c *Client) GetSeries(ctx context.Context, options ...Option) (*Series, error) {
	return result[Series](ctx, c, "GET", "/series", nil, options)
}

// GetSession: GET /session. Returns the operator who sends the request, and the operator's
// permissions.
func (c *Client) GetSession(ctx context.Context, options ...Option) (*Identity, error) {
	return result[Identity](ctx, c, "GET", "/session", nil, options)
}

// GetSetup: GET /setup. Returns whether the first user has to be created, and the ways to sign
// in.
func (c *Client) GetSetup(ctx context.Context, options ...Option) (*SetupState, error) {
	return result[SetupState](ctx, c, "GET", "/setup", nil, options)
}

// GetSignInSettings: GET /settings/sign_in. Returns the sign-in for applications.
func (c *Client) GetSignInSettings(ctx context.Context, options ...Option) (*SignInObject, error) {
	return result[SignInObject](ctx, c, "GET", "/settings/sign_in", nil, options)
}

// GetStatus: GET /status. Shows the status of ports, proxies, servers, certificates and
// discovery, and a change that waits for confirmation. Query parameters: proxy, proxies, node.
func (c *Client) GetStatus(ctx context.Context, options ...Option) (*Status, error) {
	return result[Status](ctx, c, "GET", "/status", nil, options)
}

// GetStore: GET /store. Shows the state of the store: whether it is shared with other nodes, and
// how far this node follows it.
func (c *Client) GetStore(ctx context.Context, options ...Option) (*Store, error) {
	return result[Store](ctx, c, "GET", "/store", nil, options)
}

// GetStoreCheck: GET /store/check. Checks the database that the nodes share, over the connection
// of this node: its revision, its clock, and settings with which acknowledged changes can be
// lost.
func (c *Client) GetStoreCheck(ctx context.Context, options ...Option) (*StoreCheck, error) {
	return result[StoreCheck](ctx, c, "GET", "/store/check", nil, options)
}

// GetStoredCertificate: GET /stored_certificates/{name}. Returns one certificate in the state
// directory, without its key.
func (c *Client) GetStoredCertificate(ctx context.Context, name string, options ...Option) (*StoredCertificate, error) {
	return result[StoredCertificate](ctx, c, "GET", "/stored_certificates/"+url.PathEscape(name), nil, options)
}

// GetSummary: GET /summary. Counts the proxies by state and their servers by health, and names
// the proxies that need attention. Query parameters: node.
func (c *Client) GetSummary(ctx context.Context, options ...Option) (*StatusSummary, error) {
	return result[StatusSummary](ctx, c, "GET", "/summary", nil, options)
}

// GetTCPProxy: GET /tcp_proxies/{name}. Returns one TCP proxy.
func (c *Client) GetTCPProxy(ctx context.Context, name string, options ...Option) (*TCPProxyObject, error) {
	return result[TCPProxyObject](ctx, c, "GET", "/tcp_proxies/"+url.PathEscape(name), nil, options)
}

// GetToken: GET /tokens/{name}. Returns one token, without its text.
func (c *Client) GetToken(ctx context.Context, name string, options ...Option) (*Token, error) {
	return result[Token](ctx, c, "GET", "/tokens/"+url.PathEscape(name), nil, options)
}

// GetTracingSettings: GET /settings/tracing. Returns the tracing.
func (c *Client) GetTracingSettings(ctx context.Context, options ...Option) (*TracingObject, error) {
	return result[TracingObject](ctx, c, "GET", "/settings/tracing", nil, options)
}

// GetUDPProxy: GET /udp_proxies/{name}. Returns one UDP proxy.
func (c *Client) GetUDPProxy(ctx context.Context, name string, options ...Option) (*UDPProxyObject, error) {
	return result[UDPProxyObject](ctx, c, "GET", "/udp_proxies/"+url.PathEscape(name), nil, options)
}

// GetUpgrade: GET /upgrade. Returns the version and generation of the process, whether an
// upgrade is in progress, and how many connections the replaced process still has.
func (c *Client) GetUpgrade(ctx context.Context, options ...Option) (*UpgradeState, error) {
	return result[UpgradeState](ctx, c, "GET", "/upgrade", nil, options)
}

// GetUpstreamsSettings: GET /settings/upstreams. Returns the settings for upstreams.
func (c *Client) GetUpstreamsSettings(ctx context.Context, options ...Option) (*UpstreamsObject, error) {
	return result[UpstreamsObject](ctx, c, "GET", "/settings/upstreams", nil, options)
}

// GetUser: GET /users/{name}. Returns one user.
func (c *Client) GetUser(ctx context.Context, name string, options ...Option) (*User, error) {
	return result[User](ctx, c, "GET", "/users/"+url.PathEscape(name), nil, options)
}

// GetVersion: GET /version. Returns the versions of headgate and of the API.
func (c *Client) GetVersion(ctx context.Context, options ...Option) (*Version, error) {
	return result[Version](ctx, c, "GET", "/version", nil, options)
}

// GetWebhook: GET /webhooks/{name}. Returns one webhook.
func (c *Client) GetWebhook(ctx context.Context, name string, options ...Option) (*WebhookObject, error) {
	return result[WebhookObject](ctx, c, "GET", "/webhooks/"+url.PathEscape(name), nil, options)
}

// GetWebhookState: GET /webhooks/{name}/state. Returns the state of a webhook, with the messages
// that are queued and those that could not be delivered.
func (c *Client) GetWebhookState(ctx context.Context, name string, options ...Option) (*QueueState, error) {
	return result[QueueState](ctx, c, "GET", "/webhooks/"+url.PathEscape(name)+"/state", nil, options)
}

// HoldSplit: POST /splits/hold. Stops the schedule of a split at the current share. The
// candidate is still returned if it is worse.
func (c *Client) HoldSplit(ctx context.Context, in *SplitInput, options ...Option) (*SplitState, error) {
	return result[SplitState](ctx, c, "POST", "/splits/hold", in, options)
}

// Import: POST /import. Translates the configuration of another proxy. Nothing is saved or
// applied.
func (c *Client) Import(ctx context.Context, in *ImportInput, options ...Option) (*Import, error) {
	return result[Import](ctx, c, "POST", "/import", in, options)
}

// InvitePerson: POST /people/{name}/invitation. Creates an invitation link, with which a person
// sets up credentials once. An earlier link stops working. The link is in this response only.
func (c *Client) InvitePerson(ctx context.Context, name string, in *InviteInput, options ...Option) (*Invite, error) {
	return result[Invite](ctx, c, "POST", "/people/"+url.PathEscape(name)+"/invitation", in, options)
}

// LiftBan: POST /banned/lift. Lifts all bans that have an address, or a network and those within
// it.
func (c *Client) LiftBan(ctx context.Context, in *LiftInput, options ...Option) (*LiftedBans, error) {
	return result[LiftedBans](ctx, c, "POST", "/banned/lift", in, options)
}

// ListACME: GET /acme. Lists the objects of the kind acme. The ETag is that of the
// configuration. Query parameters: limit, cursor, q, sort.
func (c *Client) ListACME(ctx context.Context, options ...Option) iter.Seq2[ACMEObject, error] {
	return ListAll[ACMEObject](ctx, c, "/acme", options...)
}

// ListAudit: GET /audit. Lists the entries of the audit log, newest first, with the values
// before and after. Query parameters: limit, cursor, who, action, object.
func (c *Client) ListAudit(ctx context.Context, options ...Option) iter.Seq2[Audit, error] {
	return ListAll[Audit](ctx, c, "/audit", options...)
}

// ListBanned: GET /banned. Lists active bans, with the number of requests that each rejected on
// this node. Query parameters: limit, cursor, q, sort.
func (c *Client) ListBanned(ctx context.Context, options ...Option) iter.Seq2[BannedAddress, error] {
	return ListAll[BannedAddress](ctx, c, "/banned", options...)
}

// ListBans: GET /bans. Lists the objects of the kind bans. The ETag is that of the
// configuration. Query parameters: limit, cursor, q, sort.
func (c *Client) ListBans(ctx context.Context, options ...Option) iter.Seq2[BanObject, error] {
	return ListAll[BanObject](ctx, c, "/bans", options...)
}

// ListCertificates: GET /certificates. Lists the objects of the kind certificates. The ETag is
// that of the configuration. Query parameters: limit, cursor, q, sort.
func (c *Client) ListCertificates(ctx context.Context, options ...Option) iter.Seq2[CertificateObject, error] {
	return ListAll[CertificateObject](ctx, c, "/certificates", options...)
}

// ListChosenCertificates: GET /certificates/chosen. Shows which certificate clients get for a
// host, or for the virtual hosts of a proxy, on each port with TLS, and why. Query parameters:
// host, proxy.
func (c *Client) ListChosenCertificates(ctx context.Context, options ...Option) iter.Seq2[ChosenCertificate, error] {
	return ListAll[ChosenCertificate](ctx, c, "/certificates/chosen", options...)
}

// ListDNSProviders: GET /dns_providers. Lists the providers of the DNS challenge, with the names
// of the credentials of each.
func (c *Client) ListDNSProviders(ctx context.Context, options ...Option) (*DnsProviders, error) {
	return result[DnsProviders](ctx, c, "GET", "/dns_providers", nil, options)
}

// ListEch: GET /ech. Lists the ports with Encrypted Client Hello: the public name, the keys
// without what is secret, and the HTTPS records with which clients use them. Query parameters:
// limit, cursor, q, sort.
func (c *Client) ListEch(ctx context.Context, options ...Option) iter.Seq2[ECHState, error] {
	return ListAll[ECHState](ctx, c, "/ech", options...)
}

// ListEvents: GET /events/history. Lists the stored events, newest first. Query parameters:
// types, limit, cursor.
func (c *Client) ListEvents(ctx context.Context, options ...Option) iter.Seq2[Event, error] {
	return ListAll[Event](ctx, c, "/events/history", options...)
}

// ListGateGroups: GET /gate/groups. Lists the groups that headgate stores, with their members.
// Query parameters: limit, cursor, q, sort.
func (c *Client) ListGateGroups(ctx context.Context, options ...Option) iter.Seq2[Group, error] {
	return ListAll[Group](ctx, c, "/gate/groups", options...)
}

// ListGateLinks: GET /gate/links. Lists the share links, without their secrets, and how many
// browsers use them. Query parameters: limit, cursor, q, sort.
func (c *Client) ListGateLinks(ctx context.Context, options ...Option) iter.Seq2[GateLink, error] {
	return ListAll[GateLink](ctx, c, "/gate/links", options...)
}

// ListGateOpenings: GET /gate/openings. Lists the hosts whose gate is temporarily open to
// everyone. Query parameters: limit, cursor, q, sort.
func (c *Client) ListGateOpenings(ctx context.Context, options ...Option) iter.Seq2[Opening, error] {
	return ListAll[Opening](ctx, c, "/gate/openings", options...)
}

// ListGateSessions: GET /gate/sessions. Lists the sessions of people at applications, including
// those of people from providers. Query parameters: limit, cursor, q, sort.
func (c *Client) ListGateSessions(ctx context.Context, options ...Option) iter.Seq2[PersonSession, error] {
	return ListAll[PersonSession](ctx, c, "/gate/sessions", options...)
}

// ListGateTokens: GET /gate/tokens. Lists the tokens with which applications pass a gate,
// without their text. Query parameters: limit, cursor, q, sort.
func (c *Client) ListGateTokens(ctx context.Context, options ...Option) iter.Seq2[GateToken, error] {
	return ListAll[GateToken](ctx, c, "/gate/tokens", options...)
}

// ListHeldServers: GET /servers/held. Lists the servers that operators drain or have disabled.
// Query parameters: limit, cursor, q, sort.
func (c *Client) ListHeldServers(ctx context.Context, options ...Option) iter.Seq2[HeldServer, error] {
	return ListAll[HeldServer](ctx, c, "/servers/held", options...)
}

// ListLists: GET /lists. Lists the objects of the kind lists. The ETag is that of the
// configuration. Query parameters: limit, cursor, q, sort.
func (c *Client) ListLists(ctx context.Context, options ...Option) iter.Seq2[ListObject, error] {
	return ListAll[ListObject](ctx, c, "/lists", options...)
}

// ListMirrors: GET /mirrors. Lists the routes whose `mirror` has `compare`: how the responses of
// the mirror differ from those of the servers, as this machine has counted since its start, with
// samples. Query parameters: limit, cursor, q, sort, proxy.
func (c *Client) ListMirrors(ctx context.Context, options ...Option) iter.Seq2[MirrorReport, error] {
	return ListAll[MirrorReport](ctx, c, "/mirrors", options...)
}

// ListNodes: GET /nodes. Lists the nodes that share the store. Without a shared store, the list
// contains only this node. Query parameters: limit, cursor, q, sort.
func (c *Client) ListNodes(ctx context.Context, options ...Option) iter.Seq2[Node, error] {
	return ListAll[Node](ctx, c, "/nodes", options...)
}

// ListNotices: GET /notices. Lists the objects of the kind notices. The ETag is that of the
// configuration. Query parameters: limit, cursor, q, sort.
func (c *Client) ListNotices(ctx context.Context, options ...Option) iter.Seq2[NoticeObject, error] {
	return ListAll[NoticeObject](ctx, c, "/notices", options...)
}

// ListOrders: GET /orders. Lists the certificates issued by ACME, with their states and the
// reason if one is missing. Query parameters: limit, cursor, q, sort, state, on_demand.
func (c *Client) ListOrders(ctx context.Context, options ...Option) iter.Seq2[Order, error] {
	return ListAll[Order](ctx, c, "/orders", options...)
}

// ListOwnPasskeys: GET /session/passkeys. Returns your passkeys, and whether passkeys can be
// used where the console is open.
func (c *Client) ListOwnPasskeys(ctx context.Context, options ...Option) (*OwnPasskeys, error) {
	return result[OwnPasskeys](ctx, c, "GET", "/session/passkeys", nil, options)
}

// ListPeople: GET /people. Lists the people that headgate stores. Query parameters: limit,
// cursor, q, sort.
func (c *Client) ListPeople(ctx context.Context, options ...Option) iter.Seq2[Person, error] {
	return ListAll[Person](ctx, c, "/people", options...)
}

// ListPolicies: GET /policies. Lists the objects of the kind policies. The ETag is that of the
// configuration. Query parameters: limit, cursor, q, sort.
func (c *Client) ListPolicies(ctx context.Context, options ...Option) iter.Seq2[PolicyObject, error] {
	return ListAll[PolicyObject](ctx, c, "/policies", options...)
}

// ListPorts: GET /ports. Lists the objects of the kind ports. The ETag is that of the
// configuration. Query parameters: limit, cursor, q, sort.
func (c *Client) ListPorts(ctx context.Context, options ...Option) iter.Seq2[PortObject, error] {
	return ListAll[PortObject](ctx, c, "/ports", options...)
}

// ListProxies: GET /proxies. Lists the objects of the kind proxies. The ETag is that of the
// configuration. Query parameters: limit, cursor, q, sort.
func (c *Client) ListProxies(ctx context.Context, options ...Option) iter.Seq2[ProxyObject, error] {
	return ListAll[ProxyObject](ctx, c, "/proxies", options...)
}

// ListRequests: GET /logs/access. Lists recent requests, newest first. Query parameters: host,
// proxy, server, status, reason, client, country, asn, method, path, slower_than, request_id,
// text, since, until, limit, cursor, node.
func (c *Client) ListRequests(ctx context.Context, options ...Option) iter.Seq2[Request, error] {
	return ListAll[Request](ctx, c, "/logs/access", options...)
}

// ListRevisions: GET /revisions. Lists the stored revisions, newest first. Query parameters:
// limit, cursor.
func (c *Client) ListRevisions(ctx context.Context, options ...Option) iter.Seq2[Revision, error] {
	return ListAll[Revision](ctx, c, "/revisions", options...)
}

// ListSessions: GET /sessions. Lists sessions: those of all users for an admin, otherwise your
// own. Query parameters: limit, cursor, q, sort.
func (c *Client) ListSessions(ctx context.Context, options ...Option) iter.Seq2[Session, error] {
	return ListAll[Session](ctx, c, "/sessions", options...)
}

// ListSplits: GET /splits. Lists the routes with a split: the share of the candidate, and what
// this machine has counted of both groups. Query parameters: limit, cursor, q, sort.
func (c *Client) ListSplits(ctx context.Context, options ...Option) iter.Seq2[SplitState, error] {
	return ListAll[SplitState](ctx, c, "/splits", options...)
}

// ListStoredCertificates: GET /stored_certificates. Lists the certificates that were uploaded to
// the state directory, without their keys. Query parameters: limit, cursor.
func (c *Client) ListStoredCertificates(ctx context.Context, options ...Option) iter.Seq2[StoredCertificate, error] {
	return ListAll[StoredCertificate](ctx, c, "/stored_certificates", options...)
}

// ListTCPProxies: GET /tcp_proxies. Lists the objects of the kind tcp_proxies. The ETag is that
// of the configuration. Query parameters: limit, cursor, q, sort.
func (c *Client) ListTCPProxies(ctx context.Context, options ...Option) iter.Seq2[TCPProxyObject, error] {
	return ListAll[TCPProxyObject](ctx, c, "/tcp_proxies", options...)
}

// ListTokens: GET /tokens. Lists tokens, without their text. Query parameters: limit, cursor, q,
// sort.
func (c *Client) ListTokens(ctx context.Context, options ...Option) iter.Seq2[Token, error] {
	return ListAll[Token](ctx, c, "/tokens", options...)
}

// ListTraffic: GET /traffic. Lists the nodes with their HTTP traffic in the last minute. If a
// node does not respond within 3 s, `problem` is the reason. Query parameters: limit, cursor, q,
// sort.
func (c *Client) ListTraffic(ctx context.Context, options ...Option) iter.Seq2[NodeTraffic, error] {
	return ListAll[NodeTraffic](ctx, c, "/traffic", options...)
}

// ListUDPProxies: GET /udp_proxies. Lists the objects of the kind udp_proxies. The ETag is that
// of the configuration. Query parameters: limit, cursor, q, sort.
func (c *Client) ListUDPProxies(ctx context.Context, options ...Option) iter.Seq2[UDPProxyObject, error] {
	return ListAll[UDPProxyObject](ctx, c, "/udp_proxies", options...)
}

// ListUsers: GET /users. Lists users. Query parameters: limit, cursor, q, sort.
func (c *Client) ListUsers(ctx context.Context, options ...Option) iter.Seq2[User, error] {
	return ListAll[User](ctx, c, "/users", options...)
}

// ListWebhooks: GET /webhooks. Lists the objects of the kind webhooks. The ETag is that of the
// configuration. Query parameters: limit, cursor, q, sort.
func (c *Client) ListWebhooks(ctx context.Context, options ...Option) iter.Seq2[WebhookObject, error] {
	return ListAll[WebhookObject](ctx, c, "/webhooks", options...)
}

// PlaceOrder: POST /orders/{name}/order. Orders a certificate now instead of waiting for the
// next attempt. A valid certificate is not ordered again.
func (c *Client) PlaceOrder(ctx context.Context, name string, options ...Option) (*Order, error) {
	return result[Order](ctx, c, "POST", "/orders/"+url.PathEscape(name)+"/order", struct{}{}, options)
}

// PlanConfig: POST /config/plan. Checks edits, or new texts of configuration files, and returns
// what they would change. Nothing is changed, so the files need not be writable. Only admins can
// send texts of files.
func (c *Client) PlanConfig(ctx context.Context, in *PlanInput, options ...Option) (*Change, error) {
	return result[Change](ctx, c, "POST", "/config/plan", in, options)
}

// PreflightOrder: POST /orders/{name}/preflight. Checks whether an order can succeed, without
// placing it.
func (c *Client) PreflightOrder(ctx context.Context, name string, options ...Option) (*Preflight, error) {
	return result[Preflight](ctx, c, "POST", "/orders/"+url.PathEscape(name)+"/preflight", struct{}{}, options)
}

// PromotePair: POST /pair/promote. Makes this machine the leader of the pair.
func (c *Client) PromotePair(ctx context.Context, in *PromoteInput, options ...Option) (*PairState, error) {
	return result[PairState](ctx, c, "POST", "/pair/promote", in, options)
}

// PromoteSplit: POST /splits/promote. Gives the candidate its next share, or the share `to`. A
// candidate that was returned starts again. The configuration does not change.
func (c *Client) PromoteSplit(ctx context.Context, in *SplitInput, options ...Option) (*SplitState, error) {
	return result[SplitState](ctx, c, "POST", "/splits/promote", in, options)
}

// PurgeCache: POST /cache/purge. Removes responses from the caches and returns their number.
func (c *Client) PurgeCache(ctx context.Context, in *PurgeInput, options ...Option) (*Purge, error) {
	return result[Purge](ctx, c, "POST", "/cache/purge", in, options)
}

// PushStore: POST /store/push. Writes the copy of this node to a shared store that was set back,
// for example by a restored backup. What was committed there since is lost.
func (c *Client) PushStore(ctx context.Context, in *NodeInput, options ...Option) (*Store, error) {
	return result[Store](ctx, c, "POST", "/store/push", in, options)
}

// PutStoredCertificate: PUT /stored_certificates/{name}. Replaces a certificate and its key. The
// new certificate is used at once.
func (c *Client) PutStoredCertificate(ctx context.Context, name string, in *UploadInput, options ...Option) (*StoredCertificate, error) {
	return result[StoredCertificate](ctx, c, "PUT", "/stored_certificates/"+url.PathEscape(name), in, options)
}

// RemoveOwnPasskey: DELETE /session/passkeys/{passkey}. Removes one of your passkeys, and ends
// the sessions that were started with it.
func (c *Client) RemoveOwnPasskey(ctx context.Context, passkey string, options ...Option) error {
	return c.Do(ctx, "DELETE", "/session/passkeys/"+url.PathEscape(passkey), nil, nil, options...)
}

// RemovePasskey: DELETE /users/{name}/passkeys/{passkey}. Removes one passkey of a user, and
// ends the sessions that were started with it.
func (c *Client) RemovePasskey(ctx context.Context, name string, passkey string, options ...Option) (*User, error) {
	return result[User](ctx, c, "DELETE", "/users/"+url.PathEscape(name)+"/passkeys/"+url.PathEscape(passkey), nil, options)
}

// RemovePasskeys: DELETE /users/{name}/passkeys. Removes all passkeys of a user who has lost
// them, and ends the sessions that were started with them.
func (c *Client) RemovePasskeys(ctx context.Context, name string, options ...Option) (*User, error) {
	return result[User](ctx, c, "DELETE", "/users/"+url.PathEscape(name)+"/passkeys", nil, options)
}

// RenameACME: POST /acme/{name}/rename. Renames an ACME entry and updates all references to it.
// Query parameters: confirm_within, why.
func (c *Client) RenameACME(ctx context.Context, name string, in *RenameInput, options ...Option) (*ACMEObject, error) {
	return result[ACMEObject](ctx, c, "POST", "/acme/"+url.PathEscape(name)+"/rename", in, options)
}

// RenameBan: POST /bans/{name}/rename. Renames a ban rule and updates all references to it.
// Query parameters: confirm_within, why.
func (c *Client) RenameBan(ctx context.Context, name string, in *RenameInput, options ...Option) (*BanObject, error) {
	return result[BanObject](ctx, c, "POST", "/bans/"+url.PathEscape(name)+"/rename", in, options)
}

// RenameCertificate: POST /certificates/{name}/rename. Renames a certificate and updates all
// references to it. Query parameters: confirm_within, why.
func (c *Client) RenameCertificate(ctx context.Context, name string, in *RenameInput, options ...Option) (*CertificateObject, error) {
	return result[CertificateObject](ctx, c, "POST", "/certificates/"+url.PathEscape(name)+"/rename", in, options)
}

// RenameList: POST /lists/{name}/rename. Renames a list and updates all references to it. Query
// parameters: confirm_within, why.
func (c *Client) RenameList(ctx context.Context, name string, in *RenameInput, options ...Option) (*ListObject, error) {
	return result[ListObject](ctx, c, "POST", "/lists/"+url.PathEscape(name)+"/rename", in, options)
}

// RenameNotice: POST /notices/{name}/rename. Renames a notice and updates all references to it.
// Query parameters: confirm_within, why.
func (c *Client) RenameNotice(ctx context.Context, name string, in *RenameInput, options ...Option) (*NoticeObject, error) {
	return result[NoticeObject](ctx, c, "POST", "/notices/"+url.PathEscape(name)+"/rename", in, options)
}

// RenamePolicy: POST /policies/{name}/rename. Renames a policy and updates all references to it.
// Query parameters: confirm_within, why.
func (c *Client) RenamePolicy(ctx context.Context, name string, in *RenameInput, options ...Option) (*PolicyObject, error) {
	return result[PolicyObject](ctx, c, "POST", "/policies/"+url.PathEscape(name)+"/rename", in, options)
}

// RenamePort: POST /ports/{name}/rename. Renames a port and updates all references to it. Query
// parameters: confirm_within, why.
func (c *Client) RenamePort(ctx context.Context, name string, in *RenameInput, options ...Option) (*PortObject, error) {
	return result[PortObject](ctx, c, "POST", "/ports/"+url.PathEscape(name)+"/rename", in, options)
}

// RenameProxy: POST /proxies/{name}/rename. Renames a proxy and updates all references to it.
// Query parameters: confirm_within, why.
func (c *Client) RenameProxy(ctx context.Context, name string, in *RenameInput, options ...Option) (*ProxyObject, error) {
	return result[ProxyObject](ctx, c, "POST", "/proxies/"+url.PathEscape(name)+"/rename", in, options)
}

// RenameTCPProxy: POST /tcp_proxies/{name}/rename. Renames a TCP proxy and updates all
// references to it. Query parameters: confirm_within, why.
func (c *Client) RenameTCPProxy(ctx context.Context, name string, in *RenameInput, options ...Option) (*TCPProxyObject, error) {
	return result[TCPProxyObject](ctx, c, "POST", "/tcp_proxies/"+url.PathEscape(name)+"/rename", in, options)
}

// RenameUDPProxy: POST /udp_proxies/{name}/rename. Renames a UDP proxy and updates all
// references to it. Query parameters: confirm_within, why.
func (c *Client) RenameUDPProxy(ctx context.Context, name string, in *RenameInput, options ...Option) (*UDPProxyObject, error) {
	return result[UDPProxyObject](ctx, c, "POST", "/udp_proxies/"+url.PathEscape(name)+"/rename", in, options)
}

// RenameWebhook: POST /webhooks/{name}/rename. Renames a webhook and updates all references to
// it. Query parameters: confirm_within, why.
func (c *Client) RenameWebhook(ctx context.Context, name string, in *RenameInput, options ...Option) (*WebhookObject, error) {
	return result[WebhookObject](ctx, c, "POST", "/webhooks/"+url.PathEscape(name)+"/rename", in, options)
}

// RenewOrder: POST /orders/{name}/renew. Renews a certificate now, even if it is still valid. It
// counts against the authority's limits.
func (c *Client) RenewOrder(ctx context.Context, name string, options ...Option) (*Order, error) {
	return result[Order](ctx, c, "POST", "/orders/"+url.PathEscape(name)+"/renew", struct{}{}, options)
}

// ReplaceACME: PUT /acme/{name}. Replaces an ACME entry. If-Match is its ETag, or that of the
// configuration. Query parameters: confirm_within, why.
func (c *Client) ReplaceACME(ctx context.Context, name string, in *ACMEObject, options ...Option) (*ACMEObject, error) {
	return result[ACMEObject](ctx, c, "PUT", "/acme/"+url.PathEscape(name), in, options)
}

// ReplaceAccessLogSettings: PUT /settings/access_log. Replaces the access log. Query parameters:
// confirm_within, why.
func (c *Client) ReplaceAccessLogSettings(ctx context.Context, in *AccessLogObject, options ...Option) (*AccessLogObject, error) {
	return result[AccessLogObject](ctx, c, "PUT", "/settings/access_log", in, options)
}

// ReplaceAdminSettings: PUT /settings/admin. Replaces the admin listener. Query parameters:
// confirm_within, why.
func (c *Client) ReplaceAdminSettings(ctx context.Context, in *AdminObject, options ...Option) (*AdminObject, error) {
	return result[AdminObject](ctx, c, "PUT", "/settings/admin", in, options)
}

// ReplaceBan: PUT /bans/{name}. Replaces a ban rule. If-Match is its ETag, or that of the
// configuration. Query parameters: confirm_within, why.
func (c *Client) ReplaceBan(ctx context.Context, name string, in *BanObject, options ...Option) (*BanObject, error) {
	return result[BanObject](ctx, c, "PUT", "/bans/"+url.PathEscape(name), in, options)
}

// ReplaceCDNNetworksSettings: PUT /settings/cdn_networks. Replaces the networks of CDNs. Query
// parameters: confirm_within, why.
func (c *Client) ReplaceCDNNetworksSettings(ctx context.Context, in *CDNNetworksObject, options ...Option) (*CDNNetworksObject, error) {
	return result[CDNNetworksObject](ctx, c, "PUT", "/settings/cdn_networks", in, options)
}

// ReplaceCertificate: PUT /certificates/{name}. Replaces a certificate. If-Match is its ETag, or
// that of the configuration. Query parameters: confirm_within, why.
func (c *Client) ReplaceCertificate(ctx context.Context, name string, in *CertificateObject, options ...Option) (*CertificateObject, error) {
	return result[CertificateObject](ctx, c, "PUT", "/certificates/"+url.PathEscape(name), in, options)
}

// ReplaceConfig: PUT /config. Replaces the texts of configuration files in one change. If-Match
// is the ETag of the configuration. Query parameters: confirm_within, why.
func (c *Client) ReplaceConfig(ctx context.Context, in *ConfigInput, options ...Option) (*Change, error) {
	return result[Change](ctx, c, "PUT", "/config", in, options)
}

// ReplaceDefaultsSettings: PUT /settings/defaults. Replaces the defaults. Query parameters:
// confirm_within, why.
func (c *Client) ReplaceDefaultsSettings(ctx context.Context, in *DefaultsObject, options ...Option) (*DefaultsObject, error) {
	return result[DefaultsObject](ctx, c, "PUT", "/settings/defaults", in, options)
}

// ReplaceDiscoveryAgent: PUT /discovery/agents/{name}. Replaces the report of the containers of
// another machine, for the entry of discovery.agent with this name. Only a token of the same
// name with the scope agents may send it; `headgate agent` does so every 10 seconds.
func (c *Client) ReplaceDiscoveryAgent(ctx context.Context, name string, in *AgentReport, options ...Option) error {
	return c.Do(ctx, "PUT", "/discovery/agents/"+url.PathEscape(name), in, nil, options...)
}

// ReplaceDiscoverySettings: PUT /settings/discovery. Replaces the discovery. Query parameters:
// confirm_within, why.
func (c *Client) ReplaceDiscoverySettings(ctx context.Context, in *DiscoveryObject, options ...Option) (*DiscoveryObject, error) {
	return result[DiscoveryObject](ctx, c, "PUT", "/settings/discovery", in, options)
}

// ReplaceGeoSettings: PUT /settings/geo. Replaces the geo databases. Query parameters:
// confirm_within, why.
func (c *Client) ReplaceGeoSettings(ctx context.Context, in *GeoObject, options ...Option) (*GeoObject, error) {
	return result[GeoObject](ctx, c, "PUT", "/settings/geo", in, options)
}

// ReplaceList: PUT /lists/{name}. Replaces a list. If-Match is its ETag, or that of the
// configuration. Query parameters: confirm_within, why.
func (c *Client) ReplaceList(ctx context.Context, name string, in *ListObject, options ...Option) (*ListObject, error) {
	return result[ListObject](ctx, c, "PUT", "/lists/"+url.PathEscape(name), in, options)
}

// ReplaceNotice: PUT /notices/{name}. Replaces a notice. If-Match is its ETag, or that of the
// configuration. Query parameters: confirm_within, why.
func (c *Client) ReplaceNotice(ctx context.Context, name string, in *NoticeObject, options ...Option) (*NoticeObject, error) {
	return result[NoticeObject](ctx, c, "PUT", "/notices/"+url.PathEscape(name), in, options)
}

// ReplacePerson: PUT /people/{name}. Replaces a person. A change of groups applies to open
// sessions at once; the sessions of a disabled person end.
func (c *Client) ReplacePerson(ctx context.Context, name string, in *Person, options ...Option) (*Person, error) {
	return result[Person](ctx, c, "PUT", "/people/"+url.PathEscape(name), in, options)
}

// ReplacePolicy: PUT /policies/{name}. Replaces a policy. If-Match is its ETag, or that of the
// configuration. Query parameters: confirm_within, why.
func (c *Client) ReplacePolicy(ctx context.Context, name string, in *PolicyObject, options ...Option) (*PolicyObject, error) {
	return result[PolicyObject](ctx, c, "PUT", "/policies/"+url.PathEscape(name), in, options)
}

// ReplacePort: PUT /ports/{name}. Replaces a port. If-Match is its ETag, or that of the
// configuration. Query parameters: confirm_within, why.
func (c *Client) ReplacePort(ctx context.Context, name string, in *PortObject, options ...Option) (*PortObject, error) {
	return result[PortObject](ctx, c, "PUT", "/ports/"+url.PathEscape(name), in, options)
}

// ReplaceProxy: PUT /proxies/{name}. Replaces a proxy. If-Match is its ETag, or that of the
// configuration. Query parameters: confirm_within, why.
func (c *Client) ReplaceProxy(ctx context.Context, name string, in *ProxyObject, options ...Option) (*ProxyObject, error) {
	return result[ProxyObject](ctx, c, "PUT", "/proxies/"+url.PathEscape(name), in, options)
}

// ReplaceSignInSettings: PUT /settings/sign_in. Replaces the sign-in for applications. Query
// parameters: confirm_within, why.
func (c *Client) ReplaceSignInSettings(ctx context.Context, in *SignInObject, options ...Option) (*SignInObject, error) {
	return result[SignInObject](ctx, c, "PUT", "/settings/sign_in", in, options)
}

// ReplaceTCPProxy: PUT /tcp_proxies/{name}. Replaces a TCP proxy. If-Match is its ETag, or that
// of the configuration. Query parameters: confirm_within, why.
func (c *Client) ReplaceTCPProxy(ctx context.Context, name string, in *TCPProxyObject, options ...Option) (*TCPProxyObject, error) {
	return result[TCPProxyObject](ctx, c, "PUT", "/tcp_proxies/"+url.PathEscape(name), in, options)
}

// ReplaceTracingSettings: PUT /settings/tracing. Replaces the tracing. Query parameters:
// confirm_within, why.
func (c *Client) ReplaceTracingSettings(ctx context.Context, in *TracingObject, options ...Option) (*TracingObject, error) {
	return result[TracingObject](ctx, c, "PUT", "/settings/tracing", in, options)
}

// ReplaceUDPProxy: PUT /udp_proxies/{name}. Replaces a UDP proxy. If-Match is its ETag, or that
// of the configuration. Query parameters: confirm_within, why.
func (c *Client) ReplaceUDPProxy(ctx context.Context, name string, in *UDPProxyObject, options ...Option) (*UDPProxyObject, error) {
	return result[UDPProxyObject](ctx, c, "PUT", "/udp_proxies/"+url.PathEscape(name), in, options)
}

// ReplaceUpstreamsSettings: PUT /settings/upstreams. Replaces the settings for upstreams. Query
// parameters: confirm_within, why.
func (c *Client) ReplaceUpstreamsSettings(ctx context.Context, in *UpstreamsObject, options ...Option) (*UpstreamsObject, error) {
	return result[UpstreamsObject](ctx, c, "PUT", "/settings/upstreams", in, options)
}

// ReplaceUser: PUT /users/{name}. Replaces a user. Without a password, the password is kept. A
// new password, or disabling the user, ends the user's sessions.
func (c *Client) ReplaceUser(ctx context.Context, name string, in *User, options ...Option) (*User, error) {
	return result[User](ctx, c, "PUT", "/users/"+url.PathEscape(name), in, options)
}

// ReplaceWebhook: PUT /webhooks/{name}. Replaces a webhook. If-Match is its ETag, or that of the
// configuration. Query parameters: confirm_within, why.
func (c *Client) ReplaceWebhook(ctx context.Context, name string, in *WebhookObject, options ...Option) (*WebhookObject, error) {
	return result[WebhookObject](ctx, c, "PUT", "/webhooks/"+url.PathEscape(name), in, options)
}

// ResendNotice: POST /notices/{name}/resend. Sends a dead letter of a notice again, for up to
// another day.
func (c *Client) ResendNotice(ctx context.Context, name string, in *ResendInput, options ...Option) error {
	return c.Do(ctx, "POST", "/notices/"+url.PathEscape(name)+"/resend", in, nil, options...)
}

// ResendWebhook: POST /webhooks/{name}/resend. Sends a dead letter of a webhook again, for up to
// another day.
func (c *Client) ResendWebhook(ctx context.Context, name string, in *ResendInput, options ...Option) error {
	return c.Do(ctx, "POST", "/webhooks/"+url.PathEscape(name)+"/resend", in, nil, options...)
}

// ResetPerson: POST /people/{name}/reset. Removes the password, authenticator and passkeys of a
// person, ends their sessions, and creates an invitation link.
func (c *Client) ResetPerson(ctx context.Context, name string, in *InviteInput, options ...Option) (*Invite, error) {
	return result[Invite](ctx, c, "POST", "/people/"+url.PathEscape(name)+"/reset", in, options)
}

// ResetPort: POST /ports/{name}/reset. Closes all connections of a port immediately, including
// those of draining sockets. If the port is waiting for its address, retries now. New
// connections are accepted as before. The configuration does not change.
func (c *Client) ResetPort(ctx context.Context, name string, in *ResetInput, options ...Option) (*Reset, error) {
	return result[Reset](ctx, c, "POST", "/ports/"+url.PathEscape(name)+"/reset", in, options)
}

// ResetTCPProxy: POST /tcp_proxies/{name}/reset. Closes all connections of the address of a TCP
// proxy, including those of proxies that share it. If it is waiting for the address, retries
// now.
func (c *Client) ResetTCPProxy(ctx context.Context, name string, in *ResetInput, options ...Option) (*Reset, error) {
	return result[Reset](ctx, c, "POST", "/tcp_proxies/"+url.PathEscape(name)+"/reset", in, options)
}

// ResetUDPProxy: POST /udp_proxies/{name}/reset. Ends all sessions of a UDP proxy. If it is
// waiting for its address, retries now.
func (c *Client) ResetUDPProxy(ctx context.Context, name string, in *ResetInput, options ...Option) (*Reset, error) {
	return result[Reset](ctx, c, "POST", "/udp_proxies/"+url.PathEscape(name)+"/reset", in, options)
}

// RestartSplit: POST /splits/restart. Starts a split again with the first share of its settings.
func (c *Client) RestartSplit(ctx context.Context, in *SplitInput, options ...Option) (*SplitState, error) {
	return result[SplitState](ctx, c, "POST", "/splits/restart", in, options)
}

// ReturnSplit: POST /splits/return. Sends no more requests to the candidate, not even those of
// its clients, until it is promoted or restarted.
func (c *Client) ReturnSplit(ctx context.Context, in *SplitInput, options ...Option) (*SplitState, error) {
	return result[SplitState](ctx, c, "POST", "/splits/return", in, options)
}

// Revert: POST /revert. Reverts the change that waits for confirmation immediately.
func (c *Client) Revert(ctx context.Context, in *ConfirmInput, options ...Option) (*Confirm, error) {
	return result[Confirm](ctx, c, "POST", "/revert", in, options)
}

// RevertCutover: DELETE /cutover. Moves the ports of the last cutover back: a pending one is
// reverted, a confirmed one is undone by a new change that keeps all others made since.
func (c *Client) RevertCutover(ctx context.Context, options ...Option) (*Cutover, error) {
	return result[Cutover](ctx, c, "DELETE", "/cutover", nil, options)
}

// RollbackRevision: POST /revisions/{number}/rollback. Applies the configuration files of a
// revision again, as a new revision. Query parameters: confirm_within, why.
func (c *Client) RollbackRevision(ctx context.Context, number string, options ...Option) (*Change, error) {
	return result[Change](ctx, c, "POST", "/revisions/"+url.PathEscape(number)+"/rollback", struct{}{}, options)
}

// RolloverACME: POST /acme/{name}/rollover. Replaces the account key of an acme entry (RFC 8555,
// section 7.3.5).
func (c *Client) RolloverACME(ctx context.Context, name string, options ...Option) error {
	return c.Do(ctx, "POST", "/acme/"+url.PathEscape(name)+"/rollover", struct{}{}, nil, options...)
}

// SetUp: POST /setup. Creates the first user, an admin, with the token of the set-up link, and
// signs in.
func (c *Client) SetUp(ctx context.Context, in *SetupInput, options ...Option) (*SessionStarted, error) {
	return result[SessionStarted](ctx, c, "POST", "/setup", in, options)
}

// SignIn: POST /session. Signs in with a name and password, and a code if the user has an
// authenticator.
func (c *Client) SignIn(ctx context.Context, in *SignInInput, options ...Option) (*SessionStarted, error) {
	return result[SessionStarted](ctx, c, "POST", "/session", in, options)
}

// SignOut: DELETE /session. Signs out: ends the session that the cookie identifies.
func (c *Client) SignOut(ctx context.Context, options ...Option) error {
	return c.Do(ctx, "DELETE", "/session", nil, nil, options...)
}

// StartComparison: POST /compare. Starts a comparison, which sends the same requests to two
// proxies. Link-local addresses and those of cloud metadata are rejected.
func (c *Client) StartComparison(ctx context.Context, in *CompareInput, options ...Option) (*Comparison, error) {
	return result[Comparison](ctx, c, "POST", "/compare", in, options)
}

// StartCutover: POST /cutover. Moves ports to the addresses of the proxy that headgate replaces,
// in one change. If-Match is the ETag of the configuration. With watch, headgate confirms the
// change after three quarters of confirm_within, or reverts it as soon as a limit is exceeded.
// Query parameters: confirm_within, why.
func (c *Client) StartCutover(ctx context.Context, in *CutoverInput, options ...Option) (*Cutover, error) {
	return result[Cutover](ctx, c, "POST", "/cutover", in, options)
}

// StartOIDC: POST /session/oidc. Returns the URL at which a browser signs in through the
// provider.
func (c *Client) StartOIDC(ctx context.Context, options ...Option) (*OidcStart, error) {
	return result[OidcStart](ctx, c, "POST", "/session/oidc", struct{}{}, options)
}

// StartPasskey: POST /session/passkeys. Returns the question with which a browser creates a
// passkey. Nothing is stored for it.
func (c *Client) StartPasskey(ctx context.Context, in *NewPasskeyInput, options ...Option) (*PasskeyQuestion, error) {
	return result[PasskeyQuestion](ctx, c, "POST", "/session/passkeys", in, options)
}

// StartPasskeySignIn: POST /session/passkey. Returns the question with which a browser signs in
// with a passkey. Nothing is stored for it.
func (c *Client) StartPasskeySignIn(ctx context.Context, options ...Option) (*PasskeyQuestion, error) {
	return result[PasskeyQuestion](ctx, c, "POST", "/session/passkey", struct{}{}, options)
}

// StartTOTP: POST /session/totp. Creates a secret for your authenticator, which is confirmed
// with a code.
func (c *Client) StartTOTP(ctx context.Context, in *VerifyInput, options ...Option) (*Enrolment, error) {
	return result[Enrolment](ctx, c, "POST", "/session/totp", in, options)
}

// StopComparison: DELETE /compare. Stops the comparison and keeps the results so far.
func (c *Client) StopComparison(ctx context.Context, options ...Option) error {
	return c.Do(ctx, "DELETE", "/compare", nil, nil, options...)
}

// TestDNSProvider: POST /dns_providers/test. Tests the credentials of a DNS provider for a host.
// Nothing is changed at the provider. Saved credentials are not sent to another provider or
// endpoint.
func (c *Client) TestDNSProvider(ctx context.Context, in *DnsTestInput, options ...Option) (*DnsTested, error) {
	return result[DnsTested](ctx, c, "POST", "/dns_providers/test", in, options)
}

// TestNotice: POST /notices/{name}/test. Sends a test message of a notice immediately and
// returns the result.
func (c *Client) TestNotice(ctx context.Context, name string, options ...Option) (*QueueTest, error) {
	return result[QueueTest](ctx, c, "POST", "/notices/"+url.PathEscape(name)+"/test", struct{}{}, options)
}

// TestServer: POST /servers/test. Sends a GET request to a server, which need not be configured
// yet, and returns the response. Link-local addresses and those of cloud metadata are rejected.
func (c *Client) TestServer(ctx context.Context, in *ProbeInput, options ...Option) (*ServerTest, error) {
	return result[ServerTest](ctx, c, "POST", "/servers/test", in, options)
}

// TestWebhook: POST /webhooks/{name}/test. Sends a test message of a webhook immediately and
// returns the result.
func (c *Client) TestWebhook(ctx context.Context, name string, options ...Option) (*QueueTest, error) {
	return result[QueueTest](ctx, c, "POST", "/webhooks/"+url.PathEscape(name)+"/test", struct{}{}, options)
}

// UndrainNode: POST /nodes/{name}/undrain. Returns a drained node to service.
func (c *Client) UndrainNode(ctx context.Context, name string, in *NodeInput, options ...Option) (*Node, error) {
	return result[Node](ctx, c, "POST", "/nodes/"+url.PathEscape(name)+"/undrain", in, options)
}

// UpdateACME: PATCH /acme/{name}. Updates the fields of an ACME entry that are in the body (RFC
// 7396). Query parameters: confirm_within, why.
func (c *Client) UpdateACME(ctx context.Context, name string, patch any, options ...Option) (*ACMEObject, error) {
	return result[ACMEObject](ctx, c, "PATCH", "/acme/"+url.PathEscape(name), patch, options)
}

// UpdateAccessLogSettings: PATCH /settings/access_log. Updates the fields of the access log that
// are in the body (RFC 7396). Query parameters: confirm_within, why.
func (c *Client) UpdateAccessLogSettings(ctx context.Context, patch any, options ...Option) (*AccessLogObject, error) {
	return result[AccessLogObject](ctx, c, "PATCH", "/settings/access_log", patch, options)
}

// UpdateAdminSettings: PATCH /settings/admin. Updates the fields of the admin listener that are
// in the body (RFC 7396). Query parameters: confirm_within, why.
func (c *Client) UpdateAdminSettings(ctx context.Context, patch any, options ...Option) (*AdminObject, error) {
	return result[AdminObject](ctx, c, "PATCH", "/settings/admin", patch, options)
}

// UpdateBan: PATCH /bans/{name}. Updates the fields of a ban rule that are in the body (RFC
// 7396). Query parameters: confirm_within, why.
func (c *Client) UpdateBan(ctx context.Context, name string, patch any, options ...Option) (*BanObject, error) {
	return result[BanObject](ctx, c, "PATCH", "/bans/"+url.PathEscape(name), patch, options)
}

// UpdateCDNNetworksSettings: PATCH /settings/cdn_networks. Updates the fields of the networks of
// CDNs that are in the body (RFC 7396). Query parameters: confirm_within, why.
func (c *Client) UpdateCDNNetworksSettings(ctx context.Context, patch any, options ...Option) (*CDNNetworksObject, error) {
	return result[CDNNetworksObject](ctx, c, "PATCH", "/settings/cdn_networks", patch, options)
}

// UpdateCertificate: PATCH /certificates/{name}. Updates the fields of a certificate that are in
// the body (RFC 7396). Query parameters: confirm_within, why.
func (c *Client) UpdateCertificate(ctx context.Context, name string, patch any, options ...Option) (*CertificateObject, error) {
	return result[CertificateObject](ctx, c, "PATCH", "/certificates/"+url.PathEscape(name), patch, options)
}

// UpdateDefaultsSettings: PATCH /settings/defaults. Updates the fields of the defaults that are
// in the body (RFC 7396). Query parameters: confirm_within, why.
func (c *Client) UpdateDefaultsSettings(ctx context.Context, patch any, options ...Option) (*DefaultsObject, error) {
	return result[DefaultsObject](ctx, c, "PATCH", "/settings/defaults", patch, options)
}

// UpdateDiscoverySettings: PATCH /settings/discovery. Updates the fields of the discovery that
// are in the body (RFC 7396). Query parameters: confirm_within, why.
func (c *Client) UpdateDiscoverySettings(ctx context.Context, patch any, options ...Option) (*DiscoveryObject, error) {
	return result[DiscoveryObject](ctx, c, "PATCH", "/settings/discovery", patch, options)
}

// UpdateGeoSettings: PATCH /settings/geo. Updates the fields of the geo databases that are in
// the body (RFC 7396). Query parameters: confirm_within, why.
func (c *Client) UpdateGeoSettings(ctx context.Context, patch any, options ...Option) (*GeoObject, error) {
	return result[GeoObject](ctx, c, "PATCH", "/settings/geo", patch, options)
}

// UpdateList: PATCH /lists/{name}. Updates the fields of a list that are in the body (RFC 7396).
// Query parameters: confirm_within, why.
func (c *Client) UpdateList(ctx context.Context, name string, patch any, options ...Option) (*ListObject, error) {
	return result[ListObject](ctx, c, "PATCH", "/lists/"+url.PathEscape(name), patch, options)
}

// UpdateNotice: PATCH /notices/{name}. Updates the fields of a notice that are in the body (RFC
// 7396). Query parameters: confirm_within, why.
func (c *Client) UpdateNotice(ctx context.Context, name string, patch any, options ...Option) (*NoticeObject, error) {
	return result[NoticeObject](ctx, c, "PATCH", "/notices/"+url.PathEscape(name), patch, options)
}

// UpdatePerson: PATCH /people/{name}. Updates the fields of a person that are in the body (RFC
// 7396).
func (c *Client) UpdatePerson(ctx context.Context, name string, patch any, options ...Option) (*Person, error) {
	return result[Person](ctx, c, "PATCH", "/people/"+url.PathEscape(name), patch, options)
}

// UpdatePolicy: PATCH /policies/{name}. Updates the fields of a policy that are in the body (RFC
// 7396). Query parameters: confirm_within, why.
func (c *Client) UpdatePolicy(ctx context.Context, name string, patch any, options ...Option) (*PolicyObject, error) {
	return result[PolicyObject](ctx, c, "PATCH", "/policies/"+url.PathEscape(name), patch, options)
}

// UpdatePort: PATCH /ports/{name}. Updates the fields of a port that are in the body (RFC 7396).
// Query parameters: confirm_within, why.
func (c *Client) UpdatePort(ctx context.Context, name string, patch any, options ...Option) (*PortObject, error) {
	return result[PortObject](ctx, c, "PATCH", "/ports/"+url.PathEscape(name), patch, options)
}

// UpdateProxy: PATCH /proxies/{name}. Updates the fields of a proxy that are in the body (RFC
// 7396). Query parameters: confirm_within, why.
func (c *Client) UpdateProxy(ctx context.Context, name string, patch any, options ...Option) (*ProxyObject, error) {
	return result[ProxyObject](ctx, c, "PATCH", "/proxies/"+url.PathEscape(name), patch, options)
}

// UpdateSignInSettings: PATCH /settings/sign_in. Updates the fields of the sign-in for
// applications that are in the body (RFC 7396). Query parameters: confirm_within, why.
func (c *Client) UpdateSignInSettings(ctx context.Context, patch any, options ...Option) (*SignInObject, error) {
	return result[SignInObject](ctx, c, "PATCH", "/settings/sign_in", patch, options)
}

// UpdateTCPProxy: PATCH /tcp_proxies/{name}. Updates the fields of a TCP proxy that are in the
// body (RFC 7396). Query parameters: confirm_within, why.
func (c *Client) UpdateTCPProxy(ctx context.Context, name string, patch any, options ...Option) (*TCPProxyObject, error) {
	return result[TCPProxyObject](ctx, c, "PATCH", "/tcp_proxies/"+url.PathEscape(name), patch, options)
}

// UpdateTracingSettings: PATCH /settings/tracing. Updates the fields of the tracing that are in
// the body (RFC 7396). Query parameters: confirm_within, why.
func (c *Client) UpdateTracingSettings(ctx context.Context, patch any, options ...Option) (*TracingObject, error) {
	return result[TracingObject](ctx, c, "PATCH", "/settings/tracing", patch, options)
}

// UpdateUDPProxy: PATCH /udp_proxies/{name}. Updates the fields of a UDP proxy that are in the
// body (RFC 7396). Query parameters: confirm_within, why.
func (c *Client) UpdateUDPProxy(ctx context.Context, name string, patch any, options ...Option) (*UDPProxyObject, error) {
	return result[UDPProxyObject](ctx, c, "PATCH", "/udp_proxies/"+url.PathEscape(name), patch, options)
}

// UpdateUpstreamsSettings: PATCH /settings/upstreams. Updates the fields of the settings for
// upstreams that are in the body (RFC 7396). Query parameters: confirm_within, why.
func (c *Client) UpdateUpstreamsSettings(ctx context.Context, patch any, options ...Option) (*UpstreamsObject, error) {
	return result[UpstreamsObject](ctx, c, "PATCH", "/settings/upstreams", patch, options)
}

// UpdateUser: PATCH /users/{name}. Updates the fields of a user that are in the body (RFC 7396).
func (c *Client) UpdateUser(ctx context.Context, name string, patch any, options ...Option) (*User, error) {
	return result[User](ctx, c, "PATCH", "/users/"+url.PathEscape(name), patch, options)
}

// UpdateWebhook: PATCH /webhooks/{name}. Updates the fields of a webhook that are in the body
// (RFC 7396). Query parameters: confirm_within, why.
func (c *Client) UpdateWebhook(ctx context.Context, name string, patch any, options ...Option) (*WebhookObject, error) {
	return result[WebhookObject](ctx, c, "PATCH", "/webhooks/"+url.PathEscape(name), patch, options)
}

// Upgrade: POST /upgrade. Replaces the process with one that runs the binary now on disk. No
// connection is closed. The response is sent when the new process serves, or when it has failed
// to; in that case nothing has changed.
func (c *Client) Upgrade(ctx context.Context, in *UpgradeInput, options ...Option) (*Result, error) {
	return result[Result](ctx, c, "POST", "/upgrade", in, options)
}

// UploadCertificate: POST /certificates/upload. Stores a certificate with its key. The key is
// verified, the chain is sorted, and properties that clients may reject are reported. To use it,
// set stored in a certificate of the configuration.
func (c *Client) UploadCertificate(ctx context.Context, in *UploadInput, options ...Option) (*StoredCertificate, error) {
	return result[StoredCertificate](ctx, c, "POST", "/certificates/upload", in, options)
}

// ValidateConfig: POST /config/validate. Lists all problems of configuration files without
// applying them.
func (c *Client) ValidateConfig(ctx context.Context, in *ConfigInput, options ...Option) (*Validation, error) {
	return result[Validation](ctx, c, "POST", "/config/validate", in, options)
}
