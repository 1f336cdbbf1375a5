// Measures one page with Lighthouse: node measure.mjs ADDRESS. The variable CHROMIUM is the path of Chromium.
// Prints the results as JSON.
import { launch } from "chrome-launcher";
import lighthouse, { desktopConfig } from "lighthouse";

const chrome = await launch({
  chromePath: process.env.CHROMIUM,
  // Chromium's sandbox requires rights that a container does not have.
  chromeFlags: ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage"],
});
try {
  const flags = { port: chrome.port, onlyCategories: ["performance", "accessibility"], logLevel: "error" };
  const { lhr } = await lighthouse(process.argv[2], flags, desktopConfig);
  if (lhr.runtimeError) {
    throw new Error(lhr.runtimeError.message);
  }
  const audits = Object.values(lhr.audits);
  console.log(
    JSON.stringify({
      performance: 100 * lhr.categories.performance.score,
      accessibility: 100 * lhr.categories.accessibility.score,
      firstPaintSeconds: lhr.audits["first-contentful-paint"].numericValue / 1000,
      largestPaintSeconds: lhr.audits["largest-contentful-paint"].numericValue / 1000,
      blockedMs: lhr.audits["total-blocking-time"].numericValue,
      layoutShift: lhr.audits["cumulative-layout-shift"].numericValue,
      failing: audits.filter((each) => each.score !== null && each.score < 0.9).map((each) => each.id),
    }),
  );
} finally {
  await chrome.kill();
}
