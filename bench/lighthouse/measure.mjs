// Measures pages with Lighthouse: node measure.mjs SIGN_IN_LINK ADDRESS... Without a link ("-") no session is opened.
// The variable CHROMIUM is the path of Chromium. Prints one JSON object a line and page.
import { launch } from "chrome-launcher";
import lighthouse, { desktopConfig } from "lighthouse";
import puppeteer from "puppeteer-core";

const CATEGORIES = ["performance", "accessibility", "best-practices", "seo"];
const [link, ...addresses] = process.argv.slice(2);
const chrome = await launch({
  chromePath: process.env.CHROMIUM,
  // Chromium's sandbox requires rights that a container does not have.
  chromeFlags: ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage"],
});
try {
  const browser = await puppeteer.connect({ browserURL: `http://127.0.0.1:${chrome.port}`, defaultViewport: null });
  const page = await browser.newPage();
  if (link !== "-") {
    await page.goto(link);
    await page.waitForSelector("main h1");
  }
  for (const address of addresses) {
    console.log(JSON.stringify(await measure(page, address)));
  }
  await browser.disconnect();
} finally {
  await chrome.kill();
}

/** Measures a page in the tab that has the session. */
async function measure(page, address) {
  const flags = { onlyCategories: CATEGORIES, logLevel: "error", disableStorageReset: true };
  const { lhr } = await lighthouse(address, flags, desktopConfig, page);
  if (lhr.runtimeError) {
    throw new Error(lhr.runtimeError.message);
  }
  const scores = Object.fromEntries(CATEGORIES.map((name) => [name, Math.round(100 * lhr.categories[name].score)]));
  const audits = Object.values(lhr.audits);
  return {
    ...scores,
    firstPaintSeconds: lhr.audits["first-contentful-paint"].numericValue / 1000,
    largestPaintSeconds: lhr.audits["largest-contentful-paint"].numericValue / 1000,
    blockedMs: lhr.audits["total-blocking-time"].numericValue,
    layoutShift: lhr.audits["cumulative-layout-shift"].numericValue,
    failing: audits.filter((each) => each.score !== null && each.score < 0.9).map((each) => each.id),
  };
}
