import { appendFileSync } from 'node:fs'
import { basename } from 'node:path'
import type { Reporter, SerializedError, TestCase, TestModule } from 'vitest/node'

/**
 * Shows what failed and what tests note, and nothing of what passed: the output of a
 * failed run has to fit where nobody scrolls. HEADGATE_RESULTS names a file to which
 * each test's result and name are appended, a line each, as the tests of Go have it.
 */
export default class implements Reporter {
  onTestCaseResult(test: TestCase) {
    const { state, errors = [] } = test.result()
    tell(state === 'failed' ? 'fail' : state === 'passed' ? 'pass' : 'skip', nameOf(test.module, test.fullName))
    if (state === 'failed') show(`${basename(test.module.moduleId)}: ${test.fullName}`, errors)
  }

  onTestModuleEnd(module: TestModule) {
    const errors = module.errors()
    if (!errors.length) return
    tell('fail', nameOf(module, 'beside its tests'))
    show(basename(module.moduleId), errors)
  }

  onTestRunEnd(modules: readonly TestModule[], errors: readonly SerializedError[]) {
    if (errors.length) show('outside of the tests', errors)
    for (const m of modules) console.log(`${basename(m.moduleId)}: ${(m.diagnostic().duration / 1000).toFixed(1)} s`)
  }
}

const nameOf = (module: TestModule, test: string) => `web/e2e/${basename(module.moduleId)}/${test.replaceAll(' ', '_')}`

function tell(result: string, name: string) {
  if (process.env.HEADGATE_RESULTS) appendFileSync(process.env.HEADGATE_RESULTS, `${result} ${name}\n`)
}

function show(where: string, errors: readonly { message: string; stack?: string }[]) {
  console.log(`failed: ${where}`)
  for (const e of errors) {
    console.log(e.message.slice(0, 4000))
    if (Array.isArray((e as { actual?: unknown }).actual) || typeof (e as { actual?: unknown }).actual === 'string') console.log(String((e as { actual?: unknown }).actual).slice(0, 2000))
    const place = e.stack?.split('\n').filter((line) => line.includes('/e2e/')) ?? []
    if (place.length) console.log(place.slice(0, 3).join('\n'))
  }
}
