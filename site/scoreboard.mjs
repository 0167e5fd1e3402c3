// Makes the scoreboard from measured results: the tables that make bench, make abuse and
// make features write into docs/performance.md, and scoreboard.json for results of tests.

/** What stands between the marks of a generated part, or undefined. */
function part(text, name) {
  const m = text.match(new RegExp(`<!-- ${name}: begin[^>]*-->\\n([^]*?)<!-- ${name}: end -->`))
  if (!m) throw new Error(`docs/performance.md has no part ${name}`)
  return m[1].trim()
}

/** The rows of a Markdown table, as objects by column. */
export function rows(text) {
  const lines = text.split('\n').filter((line) => line.startsWith('|'))
  const cells = (line) => line.split('|').slice(1, -1).map((cell) => cell.trim())
  const names = cells(lines[0])
  return lines.slice(2).map((line) => Object.fromEntries(cells(line).map((cell, i) => [names[i], cell])))
}

const number = (cell) => Number.parseFloat((cell ?? '').replace(/^(\d+) of .*/, '$1'))
const median = (cell) => (cell ?? '–').replace(/ \(.*\)$/, '')

/** The page. */
export function scoreboard(performance, data) {
  const bench = part(performance, 'bench')
  const abuse = part(performance, 'abuse')
  const features = part(performance, 'features')
  const facts = (text) => text.split('\n').filter((line) => line.startsWith('- ') || line.startsWith('Measured'))
  const out = []
  out.push('# Scoreboard', '')
  out.push('This page shows measured results of headgate beside other proxies, including the results in which headgate is worse. It is generated from')
  out.push('the results in the repository. Each section has the command that repeats it. For methods and details, see [Performance](performance.md).', '')

  out.push('## Cost beside other proxies', '', 'Lower is better. The best result of each row is bold.', '')
  out.push(...facts(bench), '')
  const peers = ['headgate', 'nginx', 'haproxy', 'net/http']
  out.push(`| work | unit | ${peers.join(' | ')} | headgate ÷ nginx |`, `|---|---|${peers.map(() => '---').join('|')}|---|`)
  const table = rows(bench)
  let wins = 0
  let compared = 0
  for (const row of table) {
    const values = peers.map((p) => number(row[p]))
    const best = Math.min(...values.filter((v) => !Number.isNaN(v)))
    if (values.filter((v) => !Number.isNaN(v)).length > 1) {
      compared++
      if (values[0] === best) wins++
    }
    out.push(`| ${row.work} | ${row.unit} | ${peers.map((p, i) => (values[i] === best ? `**${median(row[p])}**` : median(row[p]))).join(' | ')} | ${row['÷ nginx']} |`)
  }
  out.push('', `headgate has the best result in ${wins} of ${compared} rows. net/http is Go's standard reverse proxy. The ranges of all rounds are in [Performance](performance.md).`, '')
  out.push('```sh', 'make peers   # the newest nginx and HAProxy', 'make bench', '```', '')

  const steady = part(performance, 'steady')
  out.push('## At constant rates', '', 'CPU time, and latency at the median and at the 99th percentile, at rates that leave every proxy time to spare. Lower is better.', '')
  out.push(...facts(steady), '')
  out.push('| work | headgate | nginx | haproxy | ÷ nginx | ÷ haproxy |', '|---|---|---|---|---|---|')
  for (const row of rows(steady)) out.push(`| ${row.work} | ${row.headgate} | ${row.nginx} | ${row.haproxy} | ${row['÷ nginx']} | ${row['÷ haproxy']} |`)
  out.push('', '```sh', 'make bench BENCH=-steady', '```', '')

  out.push('## Under attack', '')
  out.push(...facts(abuse), '', 'A proxy passes an attack if it answers all 20 requests of another client during the attack.', '')
  out.push('| attack | proxy | CPU, s | memory, MiB | requests of others | recovered after, s |', '|---|---|---|---|---|---|')
  for (const row of rows(abuse)) {
    const others = row['requests of others']
    out.push(`| ${row.attack} | ${row.proxy} | ${row['CPU, s']} | ${row['memory, MiB']} | ${others.startsWith('20 ') ? `**${others}**` : others} | ${row['recovered after, s']} |`)
  }
  out.push('', '```sh', 'make abuse', '```', '')

  out.push('## Cost of features', '', 'Nanoseconds of CPU time that a feature adds to a request, and allocations.', '')
  out.push(...facts(features), '', '| feature | ns CPU per request | allocations |', '|---|---|---|')
  for (const row of rows(features)) out.push(`| ${row.feature} | ${median(row['ns CPU per request'])} | ${row.allocations} |`)
  out.push('', '```sh', 'make features', '```', '')

  if (data.upgrades) {
    out.push('## Upgrades of the binary', '', data.upgrades.about, '')
    out.push('| load | headgate | nginx | haproxy |', '|---|---|---|---|')
    for (const r of data.upgrades.rows) out.push(`| ${r.load} | ${r.headgate} | ${r.nginx} | ${r.haproxy} |`)
    out.push('', '```sh', 'make upgrades', '```', '')
  }

  out.push('## Conformance', '')
  out.push('| what | result | date | version | command |', '|---|---|---|---|---|')
  for (const r of data.conformance) out.push(`| ${r.what} | ${r.result} | ${r.date} | ${r.version} | \`${r.command}\` |`)
  out.push('', 'These tests run in CI; a failure stops a release.', '')
  return out.join('\n')
}
