package api

import (
	"net/http"
	"reflect"
	"slices"

	"headgate/internal/config"
	"headgate/internal/notice"
	"headgate/internal/passkey"
)

// The areas that the scopes of tokens name.
const (
	areaAccess       = "access"
	areaAgents       = "agents"
	areaBackup       = "backup"
	areaBans         = "bans"
	areaCache        = "cache"
	areaCertificates = "certificates"
	areaConfig       = "config"
	areaCutover      = "cutover"
	areaEvents       = "events"
	areaLogs         = "logs"
	areaNodes        = "nodes"
	areaNotices      = "notices"
	areaOperators    = "operators"
	areaPorts        = "ports"
	areaServers      = "servers"
	areaSession      = "session"
	areaStatus       = AreaStatus
	areaWebhooks     = "webhooks"
)

// AreaStatus is the area of the status.
const AreaStatus = "status"

// Why some rows cannot be tried out.
const (
	noDrySignIn = "signing in or out cannot be tried without doing it"
	noDryTOTP   = "an authenticator cannot be tried without keeping its secret"
	noDryAnswer = "nothing is changed: the answer is all that is done"
)

func of[T any]() reflect.Type { return reflect.TypeFor[T]() }

// whole is the table with the rows of the configuration.
func (a *API) whole() []row {
	rows := slices.Concat(
		a.versionRows(),
		a.sessionRows(),
		a.operatorRows(),
		a.stateRows(),
		a.orderRows(),
		a.storedRows(),
		a.compareRows(),
		a.cutoverRows(),
		a.importRows(),
		a.banRows(),
		a.peopleRows(),
		a.gateTokenRows(),
		a.gateLinkRows(),
		a.queueRows(notice.Webhooks, areaWebhooks, "webhook"),
		a.queueRows(notice.Notices, areaNotices, "notice"),
	)
	for _, k := range config.Kinds() {
		rows = append(rows, a.documentRows(k)...)
	}
	return slices.Concat(rows, a.configRows(), a.cacheRows(), a.serverRows(), a.splitRows(), a.mirrorRows(), a.portRows(), a.echRows(), a.upgradeRows(), a.nodeRows(), a.trafficRows(), a.agentRows(), a.pairRows())
}

// versionRows are the operations that describe the program and the API.
func (a *API) versionRows() []row {
	const get = http.MethodGet
	return []row{
		{method: get, path: "/version", access: viewer, area: areaStatus, out: of[Version](), handle: a.version,
			about: "Returns the versions of headgate and of the API."},
		{method: get, path: "/openapi.json", steady: true, access: public, handle: a.openAPI,
			about: "Returns the API as an OpenAPI 3.1 document."},
	}
}

// sessionRows are the operations of operators on their own sessions and credentials. Paths are
// below Prefix.
func (a *API) sessionRows() []row {
	const get, post, put, del = http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete
	created := http.StatusCreated
	return []row{
		{method: get, path: "/setup", access: public, out: of[setupState](), handle: a.setupState,
			about: "Returns whether the first user has to be created, and the ways to sign in."},
		{method: post, path: "/setup", may: []int{429}, access: public, in: of[setupInput](), out: of[sessionStarted](), status: created, noDry: noDrySignIn, handle: withBody(a.setUp),
			about: "Creates the first user, an admin, with the token of the set-up link, and signs in."},
		{method: get, path: "/session", access: viewer, area: areaSession, out: of[whoAmI](), handle: a.session,
			about: "Returns the operator who sends the request, and the operator's permissions."},
		{method: post, path: "/session", may: []int{401, 429}, access: public, in: of[signInInput](), out: of[sessionStarted](), status: created, noDry: noDrySignIn, handle: withBody(a.signIn),
			about: "Signs in with a name and password, and a code if the user has an authenticator."},
		{method: del, path: "/session", access: public, noDry: noDrySignIn, handle: a.signOut,
			about: "Signs out: ends the session that the cookie identifies."},
		{method: put, path: "/session/password", may: []int{429}, access: viewer, area: areaSession, in: of[passwordInput](), dry: true, handle: withBody(a.changePassword),
			about: "Changes your password; all your sessions end."},
		{method: post, path: "/session/totp", may: []int{429}, access: viewer, area: areaSession, in: of[verifyInput](), out: of[enrolment](), noDry: noDryTOTP, handle: withBody(a.beginTOTP),
			about: "Creates a secret for your authenticator, which is confirmed with a code."},
		{method: put, path: "/session/totp", may: []int{429}, access: viewer, area: areaSession, in: of[codeInput](), out: of[recoveryCodes](), noDry: noDryTOTP, handle: withBody(a.finishTOTP),
			about: "Confirms the new authenticator with a code and returns the recovery codes, which are shown once."},
		{method: post, path: "/session/passkey", may: []int{409, 429}, access: public, in: of[empty](), out: of[passkeyQuestion](), noDry: noDrySignIn, handle: withBody(a.askPasskey),
			about: "Returns the question with which a browser signs in with a passkey. Nothing is stored for it."},
		{method: put, path: "/session/passkey", may: []int{401, 409, 429}, access: public, in: of[passkeyAnswer](), out: of[sessionStarted](), status: created, noDry: noDrySignIn, handle: withBody(a.signInPasskey),
			about: "Signs in with the answer of a passkey, which replaces the password and the code."},
		{method: get, path: "/session/passkeys", may: []int{403}, access: viewer, area: areaSession, out: of[ownPasskeys](), handle: a.passkeys,
			about: "Returns your passkeys, and whether passkeys can be used where the console is open."},
		{method: post, path: "/session/passkeys", may: []int{409, 429}, access: viewer, area: areaSession, in: of[newPasskeyInput](), out: of[passkeyQuestion](), noDry: noDryTOTP, handle: withBody(a.askNewPasskey),
			about: "Returns the question with which a browser creates a passkey. Nothing is stored for it."},
		{method: put, path: "/session/passkeys", may: []int{409}, access: viewer, area: areaSession, in: of[newPasskeyAnswer](), out: of[passkey.Passkey](), status: created, noDry: noDryTOTP, handle: withBody(a.addPasskey),
			about: "Adds the passkey that a browser has created."},
		{method: del, path: "/session/passkeys/{passkey}", access: viewer, area: areaSession, dry: true, handle: a.removeOwnPasskey,
			about: "Removes one of your passkeys, and ends the sessions that were started with it."},
		{method: post, path: "/session/oidc", may: []int{404, 429, 502}, access: public, in: of[empty](), out: of[oidcStart](), noDry: noDrySignIn, handle: withBody(a.beginOIDC),
			about: "Returns the URL at which a browser signs in through the provider."},
		{method: put, path: "/session/oidc", may: []int{401, 404, 429, 502}, access: public, in: of[oidcInput](), out: of[sessionStarted](), status: created, noDry: noDrySignIn, handle: withBody(a.finishOIDC),
			about: "Signs in with the response of the provider to the console's page."},

		{method: get, path: "/sessions", access: viewer, area: areaSession, out: of[sessionBody](), list: true, query: paging("created", "user"), handle: a.sessions,
			about: "Lists sessions: those of all users for an admin, otherwise your own."},
		{method: del, path: "/sessions/{name}", access: viewer, area: areaSession, dry: true, handle: a.revokeSession,
			about: "Ends a session: any session for an admin, otherwise one of your own."},
	}
}

// operatorRows are the operations on users and tokens.
func (a *API) operatorRows() []row {
	const get, post, put, patch, del = http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete
	created, users, tokens := http.StatusCreated, paging("name", "role", "created"), paging("name", "role", "created", "used")
	return []row{
		{method: get, path: "/users", access: admin, area: areaOperators, out: of[userBody](), list: true, query: users, handle: a.users,
			about: "Lists users."},
		{method: post, path: "/users", may: []int{409}, access: admin, area: areaOperators, in: of[userBody](), out: of[userBody](), status: created, dry: true, handle: withBody(a.createUser),
			about: "Creates a user."},
		{method: get, path: "/users/{name}", access: admin, area: areaOperators, out: of[userBody](), handle: a.user,
			about: "Returns one user."},
		{method: put, path: "/users/{name}", may: []int{409}, access: admin, area: areaOperators, in: of[userBody](), out: of[userBody](), match: true, dry: true, handle: withBody(a.putUser),
			about: "Replaces a user. Without a password, the password is kept. A new password, or disabling the user, ends the user's sessions."},
		{method: patch, path: "/users/{name}", may: []int{409}, access: admin, area: areaOperators, in: of[userBody](), out: of[userBody](), match: true, dry: true, current: a.user, handle: withBody(a.putUser),
			about: "Updates the fields of a user that are in the body (RFC 7396)."},
		{method: del, path: "/users/{name}", may: []int{409}, access: admin, area: areaOperators, match: true, dry: true, handle: a.deleteUser,
			about: "Deletes a user and ends all sessions of the user."},
		{method: del, path: "/users/{name}/totp", access: admin, area: areaOperators, out: of[userBody](), dry: true, handle: a.removeTOTP,
			about: "Removes the authenticator of a user who has lost it."},
		{method: del, path: "/users/{name}/passkeys", access: admin, area: areaOperators, out: of[userBody](), dry: true, handle: a.removePasskeys,
			about: "Removes all passkeys of a user who has lost them, and ends the sessions that were started with them."},
		{method: del, path: "/users/{name}/passkeys/{passkey}", access: admin, area: areaOperators, out: of[userBody](), dry: true, handle: a.removePasskeys,
			about: "Removes one passkey of a user, and ends the sessions that were started with it."},

		{method: get, path: "/tokens", access: admin, area: areaOperators, out: of[tokenBody](), list: true, query: tokens, handle: a.tokens,
			about: "Lists tokens, without their text."},
		{method: post, path: "/tokens", may: []int{409}, access: admin, area: areaOperators, in: of[tokenBody](), out: of[tokenBody](), status: created, dry: true, handle: withBody(a.createToken),
			about: "Creates a token. Its text is in this response and never shown again."},
		{method: get, path: "/tokens/{name}", access: admin, area: areaOperators, out: of[tokenBody](), handle: a.token,
			about: "Returns one token, without its text."},
		{method: del, path: "/tokens/{name}", access: admin, area: areaOperators, match: true, dry: true, handle: a.revokeToken,
			about: "Revokes a token."},
	}
}

// stateRows are the operations on archives, and on what happened: the audit log, events and
// requests.
func (a *API) stateRows() []row {
	const get, post = http.MethodGet, http.MethodPost
	return []row{
		{method: post, path: "/backup", may: []int{404}, access: admin, area: areaBackup, in: of[backupInput](), media: archiveMedia, noDry: noDryAnswer, stream: a.backup,
			about: "Returns an archive of the state directory."},
		{method: post, path: "/restore", access: admin, area: areaBackup, out: of[changeBody](), upload: archiveMedia, match: true, write: true, dry: true, query: changeQuery, handle: a.restore,
			about: "Restores an archive: applies its configuration files as a change, with its users, tokens and certificates. All sessions end. If-Match is the ETag of the configuration. If it is not confirmed within confirm_within, users and tokens are reverted too."},
		{method: get, path: "/audit", access: admin, area: areaOperators, out: of[auditBody](), list: true, query: auditQuery, handle: a.audit,
			about: "Lists the entries of the audit log, newest first, with the values before and after."},
		{method: get, path: "/discovery", access: viewer, area: areaStatus, ofNode: true, out: of[discoveryBody](), handle: a.discovery,
			about: "Returns the state of discovery providers, and issues with the objects that they found."},
		{method: get, path: "/events", access: viewer, area: areaEvents, query: eventQuery, stream: a.events,
			about: "Streams events as they happen (text/event-stream). Last-Event-ID continues after an event."},
		{method: get, path: "/events/history", access: viewer, area: areaEvents, out: of[eventBody](), list: true, query: historyQuery, handle: a.history,
			about: "Lists the stored events, newest first."},
		{method: get, path: "/logs/access", access: viewer, area: areaLogs, ofNode: true, out: of[requestBody](), list: true, query: logQuery(true), handle: a.logs,
			about: "Lists recent requests, newest first."},
		{method: get, path: "/logs/access/stream", access: viewer, area: areaLogs, ofNode: true, query: logQuery(false), stream: a.followLogs,
			about: "Streams requests as they end (text/event-stream)."},
	}
}

// queueRows are the rows of webhooks and notices, which are delivered by the same queue.
func (a *API) queueRows(kind notice.Kind, area, noun string) []row {
	return []row{
		{method: http.MethodGet, path: "/" + area + "/{name}/state", access: viewer, area: area, out: of[queueState](), handle: a.queueState(kind),
			about: "Returns the state of a " + noun + ", with the messages that are queued and those that could not be delivered."},
		{method: http.MethodPost, path: "/" + area + "/{name}/test", access: editor, area: area, in: of[empty](), out: of[queueTest](), noDry: "a test message that is not sent tests nothing", handle: withBody(a.testQueue(kind)),
			about: "Sends a test message of a " + noun + " immediately and returns the result."},
		{method: http.MethodPost, path: "/" + area + "/{name}/resend", access: editor, area: area, in: of[resendInput](), dry: true, handle: withBody(a.resend(kind)),
			about: "Sends a dead letter of a " + noun + " again, for up to another day."},
	}
}
