// Looks at the status page with Debian's Chromium, without JavaScript as with it.
//
// Reads one line of JSON from standard input: where the browser, the npm modules and the served pages
// are. Asks for receipts to be added with a line `add WORD`, and waits for `added`. Exits with 1 when
// something does not hold, after everything was looked at.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { join } from "node:path";

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const next = async () => (await lines.next()).value;
const { browser: executablePath, modules, screenshots, secrets, urls } = JSON.parse(await next());
const require = createRequire(join(modules, "package.json"));
const { chromium } = require("playwright-core");
const axe = require("axe-core");

const failures = [];
let checks = 0;
const check = (holds, what) => {
  checks += 1;
  if (!holds) {
    failures.push(what);
    console.log(`FAILED ${what}`);
  }
};

const browser = await chromium.launch({
  executablePath,
  // Chromium's own sandbox needs what containers do not give; the pages are ours.
  args: ["--no-sandbox", "--disable-dev-shm-usage"],
});

const SIZES = { wide: { width: 1280, height: 900 }, narrow: { width: 360, height: 740 } };

// A page in a browser of its own, whose every request is seen.
async function open(options, use) {
  const { origin, scripts = false, size = "wide", scheme = "light", reduced = "no-preference" } = options;
  // With `mayScript` the page's policy is off and what a script says is counted instead of forbidden.
  const { mayScript = false, bypassCSP = mayScript } = options;
  const context = await browser.newContext({
    javaScriptEnabled: scripts,
    viewport: SIZES[size],
    colorScheme: scheme,
    reducedMotion: reduced,
    bypassCSP,
  });
  const page = await context.newPage();
  const seen = [];
  page.on("request", (request) => seen.push(request.url()));
  page.on("console", (message) => {
    const isExpected = /status of (4|5)\d\d/.test(message.text()) || options.expects?.test(message.text());
    check(message.type() !== "error" || isExpected, `console: ${message.text()}`);
  });
  page.on("pageerror", (error) => check(false, `page error: ${error}`));
  const said = [];
  page.on("dialog", async (dialog) => {
    said.push(dialog.message());
    await dialog.dismiss();
  });
  try {
    await use(page, said);
    if (!mayScript) check(said.length === 0, `${page.url()}: a script ran: ${said}`);
    const foreign = seen.filter((url) => !url.startsWith(`${origin}/`));
    check(foreign.length === 0, `requests leave ${origin}: ${foreign}`);
    check(seen.length > 0, "requests are seen");
    const text = await page.content();
    for (const secret of secrets) check(!text.includes(secret), `${page.url()} shows ${secret}`);
  } finally {
    await context.close();
  }
}

const go = (page, url) => page.goto(url, { waitUntil: "load" });
const shoot = (page, name, fullPage = false) =>
  page.screenshot({ path: join(screenshots, `${name}.png`), fullPage });
const text = (page, selector) => page.locator(selector).allInnerTexts();

// WCAG 2.2 A and AA by axe, in both colour schemes and sizes; and no scrolling sideways.
async function accessible(name, url) {
  for (const scheme of ["light", "dark"]) {
    for (const size of ["wide", "narrow"]) {
      await open({ origin: new URL(url).origin, scripts: true, scheme, size, reduced: "reduce" }, async (page) => {
        await go(page, url);
        // In the debugger's own world, so the page's policy stands as it is.
        const session = await page.context().newCDPSession(page);
        const evaluate = async (expression) => {
          const { result, exceptionDetails } = await session.send("Runtime.evaluate", {
            expression, awaitPromise: true, returnByValue: true,
          });
          if (exceptionDetails) throw new Error(JSON.stringify(exceptionDetails));
          return result.value;
        };
        await evaluate(`${axe.source};0`);
        const found = await evaluate(
          `axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] })
             .then(({ violations, passes }) => ({
               passes: passes.length,
               violations: violations.map((it) => it.id + ": " + it.nodes.map((n) => n.html + " " + (n.any[0]?.message ?? "")).join(" | ")),
             }))`,
        );
        check(found.passes > 10, `axe looked at ${name}`);
        for (const violation of found.violations) check(false, `${name} ${scheme} ${size}: ${violation.slice(0, 700)}`);
        const overflow = await evaluate(
          "document.documentElement.scrollWidth - document.documentElement.clientWidth",
        );
        check(overflow <= 0, `${name} ${scheme} ${size} scrolls sideways by ${overflow}`);
        await shoot(page, `${name}-${size}-${scheme}`, !url.includes("open="));
      });
    }
  }
}

// The three states of the target, and those in between.
for (const [name, word] of [["ready", "ready"], ["disabled", "disabled"], ["incomplete", "incomplete"], ["broken", "incomplete"], ["empty", "ready"]]) {
  await open({ origin: urls[name] }, async (page) => {
    await go(page, `${urls[name]}/`);
    const [title] = await text(page, "#target");
    check(title.endsWith(`SQL target: ${word}`), `${name}: ${title}`);
    const status = await (await page.context().request.get(`${urls[name]}/api/status`)).json();
    check(status.sqlTarget.state === word, `${name}: ${JSON.stringify(status)}`);
    for (const { key, help } of status.sqlTarget.missing ?? []) {
      const shown = await text(page, ".missing li");
      check(shown.some((it) => it.includes(key) && it.includes(help.replaceAll("`", ""))), `${name} shows ${key}: ${shown}`);
    }
  });
}
await open({ origin: urls.waiting }, async (page) => {
  await go(page, `${urls.waiting}/`);
  check((await text(page, "#target"))[0].includes("being verified"), "a silent target is being verified");
  check((await text(page, ".empty")).join().includes("Not read yet"), "executions are not said to be unreadable");
  await shoot(page, "waiting-wide-light", true);
  // It asks again by itself, until the answer is there.
  await page.locator("#target", { hasText: "incomplete" }).waitFor({ timeout: 20000 });
  check((await text(page, ".missing"))[0].includes("target-timed-out"), "a silent target is known");
});

// Filter, without scripts.
await open({ origin: urls.ready }, async (page) => {
  await go(page, `${urls.ready}/executions`);
  check((await text(page, "#unsettled"))[0].includes("Needs attention"), "attention is first");
  await page.selectOption("#state", "failed");
  await page.fill("#plugin", "badges");
  await page.click("button");
  check(page.url().includes("state=failed&plugin=badges"), page.url());
  check((await text(page, "tbody .step")).join() === "spring-campaign:1", "the filter holds");
  check((await page.inputValue("#plugin")) === "badges", "what was written is kept");
  await page.fill("#plugin", "no such plugin");
  await page.click("button");
  check((await text(page, ".problem")).length === 1, "a wrong filter is told");
  check((await page.inputValue("#plugin")) === "no such plugin", "what was written is kept");
  check((await page.getAttribute("#plugin", "aria-invalid")) === "true", "and marked");
  check((await text(page, ".empty")).join().includes("Nothing is listed"), "why nothing is listed is said");
  await shoot(page, "filter-wrong-wide-light");
  await page.click("text=Clear");
  check(page.url() === `${urls.ready}/executions`, page.url());
});

// Pages, while receipts are added.
await open({ origin: urls.ready }, async (page) => {
  await go(page, `${urls.ready}/executions?state=succeeded`);
  const seen = [];
  for (let number = 1; number <= 6; number += 1) {
    seen.push(...(await text(page, "tbody .step")));
    console.log(`add late-${number}`);
    check((await next()) === "added", "receipts are added");
    await page.click("text=Older");
    await page.waitForLoadState("load");
  }
  check(seen.length === 300, `${seen.length} of 300 seen`);
  check(new Set(seen).size === seen.length, "no receipt twice");
  const expected = Array.from({ length: 300 }, (_, at) => `bulk-${10000 - at}`);
  check(seen.join() === expected.join(), "no receipt skipped");
  // Back up again: the same pages, then what came meanwhile, each once.
  const back = [];
  while ((await page.locator(".pager a[rel=prev]").count()) > 0) {
    await page.click(".pager a[rel=prev]");
    await page.waitForLoadState("load");
    back.unshift(...(await text(page, "tbody .step")));
  }
  check((await text(page, ".pager"))[0].includes("No newer ones"), "the way up ends");
  check(back.length === 300 + 6 * 75, `${back.length} of 750 seen on the way up`);
  check(new Set(back).size === back.length, "no receipt twice on the way up");
  check(back.slice(-300).join() === seen.join(), "none skipped on the way up");
  check(back[0] === "late-6-75", "the youngest are the new ones");
  await page.click("text=Older");
  await page.waitForLoadState("load");
  await page.click("text=Newest");
  await page.waitForLoadState("load");
  check((await text(page, "tbody .step"))[0] === "late-6-75", "the newest are the new ones");
});

// The dialog, by keyboard, without scripts.
await open({ origin: urls.ready }, async (page) => {
  await go(page, `${urls.ready}/executions?plugin=loyalty&state=succeeded`);
  await page.keyboard.press("Tab");
  check((await page.locator(":focus").innerText()) === "Skip to content", "the first stop skips");
  await page.keyboard.press("Enter");
  await page.locator("tbody .step").first().focus();
  await page.keyboard.press("Enter");
  const dialog = page.locator("dialog[open]");
  await dialog.waitFor();
  check((await page.locator(":focus").innerText()) === "Close", "the dialog has the focus");
  const shown = await dialog.innerText();
  for (const part of ["sql-jdbc:v1", "sql:preview:", "forward", "Attempts", "succeeded", "CREATE TABLE"]) {
    check(shown.includes(part), `the dialog shows ${part}`);
  }
  const times = await dialog.locator("time").evaluateAll((all) => all.map((it) => [it.dateTime, it.innerText]));
  check(times.length >= 3 && times.every(([iso, said]) => iso.endsWith("Z") && said.endsWith("Z")), `${times}`);
  // What is behind cannot be reached.
  const stops = new Set();
  for (let at = 0; at < 40; at += 1) {
    await page.keyboard.press("Tab");
    stops.add(await page.locator(":focus").evaluate((it) => (it.closest("dialog") ? "dialog" : it.tagName)).catch(() => "none"));
  }
  check(![...stops].some((it) => it === "A" || it === "INPUT" || it === "SELECT"), `stops: ${[...stops]}`);
  await shoot(page, "dialog-wide-light");
  await page.locator("dialog .close").click();
  check((await page.locator("dialog").count()) === 0 && /#r\d+$/.test(page.url()), page.url());
});

// A page with a script in it, in place of one of ours and with its headers: without the policy it runs,
// so that a text that is no text would be seen; with the policy it does not.
const planted = async (page) => {
  await page.route("**/outbox", async (route) => {
    const response = await route.fetch();
    const body = (await response.text()).replace("</main>", "<script>alert(1)</script></main>");
    await route.fulfill({ response, body });
  });
  await go(page, `${urls.ready}/outbox`);
  check((await page.locator("script").count()) === 1, "a script is planted");
};
await open({ origin: urls.ready, scripts: true, mayScript: true }, async (page, said) => {
  await planted(page);
  check(said.join() === "1", `a script that runs is seen: ${said}`);
});
await open({ origin: urls.ready, scripts: true, expects: /Content Security Policy/ }, planted);

// A key that a path would swallow, from the list to its own page.
await open({ origin: urls.ready }, async (page) => {
  for (const key of [".", ".."]) {
    await go(page, `${urls.ready}/executions?plugin=loyalty&state=needs-attention`);
    await page.getByRole("link", { name: key, exact: true }).first().click();
    await page.locator("dialog[open]").waitFor();
    await page.click("text=On its own page");
    await page.waitForLoadState("load");
    check((await text(page, "#execution-title")).join() === key, `${key} opens: ${page.url()}`);
  }
});

// Hostile text is text, whether scripts may run or not, and without the policy that would stop them.
for (const [scripts, bypassCSP] of [[false, false], [true, false], [true, true]]) {
  await open({ origin: urls.ready, scripts, bypassCSP }, async (page) => {
    for (const path of ["/executions/summer-7:5", "/executions/orders-1.0.0:1", "/executions?plugin=%22%3E%3Cscript%3Ealert(1)%3C/script%3E"]) {
      await go(page, urls.ready + path);
      check((await page.locator("script").count()) === 0, `${path} has no script`);
      check((await page.content()).includes("alert(1)"), `${path} shows the hostile text`);
    }
    await go(page, `${urls.ready}/executions/summer-7:5`);
    check((await text(page, ".error"))[0].includes("<script>alert(1)"), "the text is shown");
    const rest = page.locator(".error pre");
    check(!(await rest.isVisible()), "a long text is cut");
    await page.locator(".error summary").click();
    check(await rest.isVisible(), "the rest is a click away");
  });
}

// Accessible in every state, both colour schemes, both sizes; and pictures to look at.
for (const [name, path] of [
  ["status-ready", "/"],
  ["executions", "/executions"],
  ["executions-none", "/executions?plugin=nobody"],
  ["dialog", "/executions?state=succeeded&plugin=orders&open=orders-1.0.0:1"],
  ["execution-attention", "/executions/summer-7:4"],
  ["execution-stuck", "/executions/spring-campaign:1"],
  ["execution-hostile", "/executions/summer-7:5"],
  ["execution-unknown", "/executions/nobody"],
  ["outbox", "/outbox"],
  ["wrong-filter", "/executions?state=fine&plugin=%20x%20y&before=z"],
  ["not-found", "/nothing"],
]) {
  await accessible(name, urls.ready + path);
}
await accessible("status-disabled", `${urls.disabled}/`);
await accessible("executions-disabled", `${urls.disabled}/executions`);
await accessible("status-incomplete", `${urls.incomplete}/`);
await accessible("status-broken", `${urls.broken}/`);
await accessible("status-empty", `${urls.empty}/`);
await accessible("executions-empty", `${urls.empty}/executions`);
await accessible("executions-error", `${urls.incomplete}/executions`);
await accessible("outbox-empty", `${urls.empty}/outbox`);

await browser.close();
if (failures.length > 0) {
  console.log(`${failures.length} of ${checks} checks failed`);
  process.exit(1);
}
console.log(`all of it holds: ${checks} checks, pictures in ${screenshots}`);
process.exit(0);
