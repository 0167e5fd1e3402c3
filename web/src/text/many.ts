/** "1 server", "2 servers". */
export const many = (n: number, one: string, more = one + 's') => `${n.toLocaleString('en')} ${n === 1 ? one : more}`
