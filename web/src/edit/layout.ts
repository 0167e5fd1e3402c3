/**
 * How the forms of objects are laid out by hand: what people usually set comes first, in
 * this order; the rest is folded, in groups that a person thinks in. A field that no layout
 * names is shown last, so that a new one is never lost. A test compares this with the schema.
 */
export type Group = 'access' | 'answers' | 'speed' | 'limits' | 'failing' | 'served' | 'protocol' | 'tls' | 'proofs' | 'account' | 'order' | 'kept' | 'labels' | 'sending'
type Layout = { usual: string[]; groups?: [Group, string[]][] }

const features: [Group, string[]][] = [
  ['access', ['gate', 'basic_auth', 'forward_auth', 'ip_filter', 'client_ip', 'cors']],
  ['answers', ['redirect_http_to_https', 'redirects', 'headers', 'security_headers', 'rewrite', 'error_pages', 'maintenance']],
  ['speed', ['cache', 'compression']],
  ['limits', ['rate_limit', 'request_body_limit', 'request_timeout']],
]

export const layouts: Record<string, Layout> = {
  Proxy: {
    usual: ['virtual_hosts', 'routes', 'redirect_http_to_https', 'use', 'acme', 'description', 'tags'],
    groups: [...features, ['served', ['active', 'ports', 'share_hosts', 'on_demand']], ['protocol', ['host_header', 'forwarded_style', 'via_style', 'access_log']]],
  },
  Route: {
    usual: ['path', 'servers', 'strip_prefix', 'health_check'],
    groups: [
      ['failing', ['load_balancing', 'sticky_cookie', 'retry', 'timeouts', 'ejection', 'circuit_breaker', 'slow_start', 'queue', 'fail_open']],
      ...features.map(([g, list]): [Group, string[]] => (g === 'answers' ? [g, ['files', 'fastcgi', 'fixed_response', 'sign_in', ...list]] : g === 'access' ? [g, ['use', ...list]] : [g, list])),
      ['sending', ['matchers', 'split', 'mirror', 'allow_trace', 'ambiguous_paths']],
    ],
  },
  Policy: { usual: ['description', 'tags'], groups: features },
  Defaults: { usual: ['redirect_http_to_https', 'security_headers', 'compression'], groups: features },
  List: { usual: ['entries', 'url', 'file', 'crowdsec', 'description', 'tags'] },
  Ban: { usual: ['when', 'within', 'ban', 'mode', 'answer', 'exempt', 'description', 'tags'] },
  Server: { usual: ['url', 'weight', 'backup', 'group'] },
  HealthCheck: { usual: ['path', 'interval', 'status', 'timeout'] },
  Port: {
    usual: ['address', 'protocol', 'description', 'tags', 'active'],
    groups: [
      ['tls', ['tls', 'h2c']],
      ['limits', ['limits']],
      ['protocol', ['proxy_protocol', 'drain_timeout', 'nodes']],
    ],
  },
  HTTPDocument: {
    usual: ['url', 'interval', 'hosts', 'servers'],
    groups: [
      ['account', ['auth', 'ca_file', 'sha256']],
      ['limits', ['ports', 'acme', 'listen', 'nodes']],
    ],
  },
  Limits: { usual: ['max_connections', 'header_timeout', 'keep_alive_timeout'] },
  TCPProxy: {
    usual: ['address', 'port', 'sni', 'servers', 'description', 'tags', 'active'],
    groups: [
      ['tls', ['tls', 'alpn']],
      ['failing', ['load_balancing', 'health_check', 'connect_timeout', 'idle_timeout']],
      ['access', ['ip_filter', 'max_connections']],
      ['protocol', ['proxy_protocol', 'accept_proxy_protocol', 'drain_timeout', 'access_log', 'nodes']],
    ],
  },
  UDPProxy: {
    usual: ['address', 'servers', 'description', 'tags', 'active'],
    groups: [
      ['failing', ['load_balancing', 'idle_timeout']],
      ['access', ['ip_filter', 'max_sessions']],
      ['protocol', ['proxy_protocol', 'access_log', 'nodes']],
    ],
  },
  StreamTLS: { usual: ['alpn', 'min_version', 'acme', 'default_certificate'] },
  StreamServer: { usual: ['address', 'weight'] },
  Certificate: { usual: ['stored', 'cert_file', 'key_file', 'description', 'tags'] },
  ACME: {
    usual: ['directory', 'email', 'domains', 'default', 'challenge', 'dns', 'description', 'tags'],
    groups: [
      ['account', ['eab', 'ca_file']],
      ['order', ['key_type', 'profile', 'renew', 'preferred_chain', 'fallbacks']],
      ['proofs', ['http_port', 'https_port', 'resolvers']],
    ],
  },
  DNS: { usual: ['provider', 'credentials'] },
  Webhook: { usual: ['url', 'secret', 'events', 'active', 'description', 'tags'] },
  Notice: { usual: ['email', 'ntfy', 'gotify', 'discord', 'slack', 'telegram', 'matrix', 'teams', 'json', 'level', 'events', 'urgent', 'digest', 'quiet', 'active', 'description', 'tags'] },
  Email: { usual: ['server', 'tls', 'user', 'password', 'from', 'to'] },
  Docker: {
    usual: ['endpoint', 'hosts', 'exposed_by_default', 'network'],
    groups: [
      ['labels', ['ports', 'acme', 'listen', 'filters', 'nodes']],
      ['tls', ['tls']],
    ],
  },
  AccessLog: { usual: ['enabled', 'path', 'format', 'recent', 'sample'], groups: [['kept', ['redact_query', 'omit', 'request_headers', 'response_headers']]] },
  Tracing: { usual: ['enabled', 'endpoint', 'sample'] },
  Upstreams: { usual: ['idle_timeout', 'body_idle_timeout', 'max_idle_connections', 'resolvers'] },
  Admin: { usual: ['address', 'hosts', 'certificate'], groups: [['access', ['oidc', 'trusted_proxies']]] },
  SignInConfig: { usual: ['issuer', 'client_id', 'client_secret', 'label', 'scopes', 'emails'] },
  OIDC: { usual: ['issuer', 'client_id', 'client_secret', 'redirect_url', 'roles'] },
  BasicAuth: { usual: ['users', 'realm'] },
  Gate: {
    usual: ['enabled', 'allow', 'from'],
    groups: [
      ['access', ['basic_tokens', 'bypass']],
      ['protocol', ['same_site', 'shared_cache']],
    ],
  },
  ForwardAuth: { usual: ['preset', 'url', 'signin_url', 'skip_paths'] },
  IPFilter: { usual: ['allow', 'deny'] },
  RateLimit: { usual: ['requests', 'period', 'burst'] },
  ClientIP: { usual: ['cdn', 'trusted', 'header'] },
  CORS: { usual: ['allow_origins', 'allow_methods', 'allow_headers', 'allow_credentials'] },
  Cache: { usual: ['default_ttl', 'memory_limit'] },
  Compression: { usual: ['algorithms', 'min_size'] },
  SecurityHeaders: { usual: ['preset', 'hsts', 'content_security_policy', 'frame_options'] },
  HeaderRule: { usual: ['direction', 'operation', 'name', 'value'] },
  Rewrite: { usual: ['regex', 'replacement', 'add_prefix'] },
  Maintenance: { usual: ['body', 'retry_after', 'bypass'] },
  ErrorPage: { usual: ['status', 'body', 'upstream'] },
  Files: { usual: ['root', 'index', 'spa'] },
  FastCGI: { usual: ['root', 'server_root', 'front_controller', 'params'] },
  StickyCookie: { usual: ['name', 'max_age'] },
  Mirror: { usual: ['servers', 'percent', 'compare'] },
  Ejection: { usual: ['failures', 'time'] },
  CircuitBreaker: { usual: ['error_percent', 'open_time', 'window'] },
}

/** Fields that name other objects: they are chosen from a list. A kind of '' is the types of events. */
export const references: Record<string, Record<string, string>> = {
  Proxy: { ports: 'ports', use: 'policies', acme: 'acme' },
  Route: { use: 'policies' },
  TCPProxy: { port: 'ports' },
  TLS: { default_certificate: 'certificates' },
  ECH: { dns: 'acme' },
  StreamTLS: { default_certificate: 'certificates', acme: 'acme' },
  Admin: { certificate: 'certificates' },
  Certificate: { stored: 'stored_certificates' },
  Docker: { ports: 'ports', acme: 'acme' },
  HTTPDocument: { ports: 'ports', acme: 'acme' },
  Agent: { ports: 'ports', acme: 'acme' },
  Webhook: { events: 'events' },
  Notice: { events: 'events' },
}

/** The fields of an object in their places: first, in groups, and those that are in none. */
export function placed(def: string, names: string[], set: (name: string) => boolean, required: string[] = []): { first: string[]; groups: [Group | '', string[]][] } {
  const layout = layouts[def]
  const usual = layout?.usual ?? names.slice(0, 4)
  const first = [...usual.filter((n) => names.includes(n)), ...names.filter((n) => !usual.includes(n) && required.includes(n))]
  // What is set is not looked for behind a fold; of a large object the fold says what is in it.
  if (!layout?.groups) first.push(...names.filter((n) => !first.includes(n) && set(n)))
  const left = new Set(names.filter((n) => !first.includes(n)))
  const groups: [Group | '', string[]][] = []
  for (const [group, list] of layout?.groups ?? []) {
    const here = list.filter((n) => left.delete(n))
    if (here.length) groups.push([group, here])
  }
  if (left.size) groups.push(['', [...left]])
  return { first, groups }
}
