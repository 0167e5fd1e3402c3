/**
 * What people know the providers of the DNS challenge by, and where each gives its
 * credentials. Which there are, and the names of their credentials, comes from the API.
 */
export const dnsProviders: Record<string, { title: string; url?: string }> = {
  'acme-dns': { title: 'acme-dns' },
  bunny: { title: 'bunny.net', url: 'https://dash.bunny.net/account/api-key' },
  cloudflare: { title: 'Cloudflare', url: 'https://dash.cloudflare.com/profile/api-tokens' },
  desec: { title: 'deSEC', url: 'https://desec.io/tokens' },
  digitalocean: { title: 'DigitalOcean', url: 'https://cloud.digitalocean.com/account/api/tokens' },
  dnsimple: { title: 'DNSimple', url: 'https://dnsimple.com/user' },
  duckdns: { title: 'Duck DNS', url: 'https://www.duckdns.org/' },
  exec: { title: 'exec' },
  gandi: { title: 'Gandi', url: 'https://admin.gandi.net/organizations/account/pat' },
  godaddy: { title: 'GoDaddy', url: 'https://developer.godaddy.com/keys' },
  google: { title: 'Google Cloud DNS', url: 'https://console.cloud.google.com/iam-admin/serviceaccounts' },
  hetzner: { title: 'Hetzner', url: 'https://console.hetzner.com/' },
  httpreq: { title: 'httpreq' },
  ionos: { title: 'IONOS', url: 'https://developer.hosting.ionos.com/docs/getstarted' },
  linode: { title: 'Linode (Akamai)', url: 'https://cloud.linode.com/profile/tokens' },
  namecheap: { title: 'Namecheap', url: 'https://ap.www.namecheap.com/settings/tools/apiaccess/' },
  netcup: { title: 'netcup', url: 'https://www.customercontrolpanel.de/' },
  ovh: { title: 'OVHcloud', url: 'https://www.ovh.com/auth/api/createToken' },
  porkbun: { title: 'Porkbun', url: 'https://porkbun.com/account/api' },
  rfc2136: { title: 'RFC 2136 (BIND, Knot, PowerDNS)' },
  route53: { title: 'Amazon Route 53', url: 'https://console.aws.amazon.com/iam/home#/security_credentials' },
  scaleway: { title: 'Scaleway', url: 'https://console.scaleway.com/iam/api-keys' },
  vultr: { title: 'Vultr', url: 'https://my.vultr.com/settings/#settingsapi' },
}

/** Credentials that are no secrets: they are shown as they are typed. */
const open = ['endpoint', 'username', 'subdomain', 'api_user', 'client_ip', 'customer_number', 'server', 'tsig_name', 'tsig_algorithm', 'project', 'hosted_zone_id', 'access_key_id']
export const isOpen = (credential: string) => open.includes(credential)
