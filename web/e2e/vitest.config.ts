import { defineConfig } from 'vitest/config'

/** Tests of the built binary in Chromium: two files at once, each with a headgate of its own, each test with a long deadline. */
export default defineConfig({
  test: {
    root: import.meta.dirname,
    include: ['**/*.e2e.ts'],
    testTimeout: 300_000,
    hookTimeout: 300_000,
    maxWorkers: 2,
    reporters: process.stdout.isTTY ? 'default' : './reporter.ts',
    disableConsoleIntercept: !process.stdout.isTTY,
  },
})
