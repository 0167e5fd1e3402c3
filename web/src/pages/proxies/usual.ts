/** The fields of a proxy that a form shows first, in this order. */
export const usualFields = ['virtual_hosts', 'routes', 'redirect_http_to_https', 'use', 'description', 'tags', 'active']
