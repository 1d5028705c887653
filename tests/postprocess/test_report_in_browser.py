"""Reports in Chromium without a network: slider, hover, turning, sorting, phones, dark mode, hostile texts."""

import os
import re
from pathlib import Path

import numpy as np
import pytest

import vlasov as vl

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (extra dev)")
CHROMIUM = Path(os.environ.get("CHROMIUM", "/usr/bin/chromium"))
pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason=f"{CHROMIUM} is not there")
HOSTILE = "<script>window.hacked=1</script><img src=x onerror=window.hacked=1>"


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def runs():
    """One in each dimension, tokens among them."""

    def solved(name, solver, times, **options):
        return vl.solve(vl.load_case(name).problem, solver, times=times, warn_above=np.inf, **options)

    return {
        1: solved("interval-1d", "finite-volume", [0.0, 0.2, 0.4], cells=64),
        2: solved("gaussian-blow-up", "finite-volume", [0.0, 0.2, 0.4], cells=32),
        3: solved("ball-3d", "finite-volume", [0.0, 0.02], cells=12),
        "tokens": solved("sphere-clusters", "particles", [0.0, 1.0, 2.0]),
    }


@pytest.fixture
def opened(browser, tmp_path):
    """Opens a report as a file; whatever it asks of a network, or says to the console, fails the test at its end."""
    said, asked, contexts = [], [], []

    def refuse(route):
        if route.request.url.startswith(("file:", "data:", "blob:")):
            route.continue_()
        else:
            asked.append(route.request.url)
            route.abort()

    def open_(made, width=1000, **how):
        file = vl.report(made).save(tmp_path / f"report-{len(contexts)}.html")
        contexts.append(browser.new_context(viewport={"width": width, "height": 800}, **how))
        page = contexts[-1].new_page()
        page.route("**/*", refuse)
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(file.as_uri())
        if page.locator(".scene").count():
            page.locator(".scene[data-time]").first.wait_for()
        return page

    yield open_
    for context in contexts:
        context.close()
    assert said == []
    assert asked == []


def go(page, k, time):
    """Move the slider as a hand does, and wait for the picture."""
    slider = page.locator(".time input")
    slider.focus()
    page.keyboard.press("Home")
    for _ in range(k):
        page.keyboard.press("ArrowRight")
    page.locator(f'.scene[data-time="{time:g}"]').wait_for()
    assert f"t = {time:g}" in page.locator(".time output").inner_text()


def hover(page, place):
    """What the page shows where a script says that something is drawn."""
    canvas = page.locator(".scene canvas")
    canvas.scroll_into_view_if_needed()
    x, y = page.evaluate(f"(() => {{ const s = V.figures.at(-1).scenes[0]; return {place}; }})()")
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + x, box["y"] + y)
    return page.locator(".scene .tip").inner_text()


def shown(text):
    return float(re.search(r"density (\S+)", text).group(1).rstrip(","))


def physical(run, k):
    return run["density"].values[k] / abs(np.linalg.det(run["frame_matrix"].values[k]))


def four_digits(value):
    return float(f"{value:.3e}")


def test_hover_on_the_line_reads_the_cell_at_that_time(opened, runs):
    run = runs[1]
    page = opened(run)
    seen = []
    for k, i in ((0, 32), (1, 20), (2, 40)):
        go(page, k, float(run["time"][k]))
        x = run["frame_origin"].values[k, 0] + run["frame_matrix"].values[k, 0, 0] * run["xi"].values[i]
        seen.append(shown(hover(page, f"[s.camera.f.px({float(x)!r}), 60]")))
        assert seen[-1] == four_digits(physical(run, k)[i])
    assert len(set(seen)) == 3


def test_hover_in_the_plane_reads_the_cell_at_that_time_and_zoom(opened, runs):
    run = runs[2]
    page = opened(run)
    for k, (i, j), zoomed in ((0, (16, 16), False), (2, (14, 17), False), (2, (14, 17), True)):
        go(page, k, float(run["time"][k]))
        if zoomed:
            page.locator(".tools button", has_text="+").click()
        z = np.array([run["xi"].values[i], run["eta"].values[j]])
        x = run["frame_origin"].values[k] + run["frame_matrix"].values[k] @ z
        told = hover(page, f"[s.camera.f.px({float(x[0])!r}), s.camera.f.py({float(x[1])!r})]")
        assert shown(told) == four_digits(physical(run, k)[i, j])
    assert not np.allclose(run["frame_matrix"].values[2], np.diag(np.diag(run["frame_matrix"].values[2])))  # sheared


def test_space_is_turned_by_the_mouse_and_hover_reads_its_densest_cell(opened, runs):
    run = runs[3]
    page = opened(run)
    middle = "[s.camera.mx, s.camera.my]"
    values = [four_digits(v) for v in physical(run, 0).ravel()]
    assert shown(hover(page, middle)) in values
    before, angle = page.locator(".scene canvas").screenshot(), page.evaluate("V.figures.at(-1).scenes[0].camera.yaw")
    page.mouse.down()
    page.mouse.move(*[sum(pair) for pair in zip(_center(page), (120, 40), strict=True)], steps=3)
    page.mouse.up()
    assert abs(page.evaluate("V.figures.at(-1).scenes[0].camera.yaw") - angle) > 0.3
    assert page.locator(".scene canvas").screenshot() != before
    assert shown(hover(page, middle)) in values


def _center(page):
    box = page.locator(".scene canvas").bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_hover_names_the_token_and_its_place(opened, runs):
    run = runs["tokens"]
    page = opened(run)
    go(page, 2, 2.0)
    told = hover(page, "s.camera.place(Array.from(s.tokens.x[2].slice(21, 24))).slice(0, 2)")
    index = int(re.search(r"token (\d+)", told).group(1))  # the seventh, or one before it
    numbers = [float(x) for x in re.search(r"at \((.*)\)", told).group(1).split(", ")]
    np.testing.assert_allclose(numbers, run["position"].values[2, index], atol=1e-5)


def test_play_moves_on_and_stops_at_the_end(opened, runs):
    page = opened(runs["tokens"])
    page.get_by_role("button", name="Play").click()
    page.locator('.scene[data-time="2"]').wait_for()
    page.locator(".time button", has_text="▶").wait_for()


def test_tables_sort_by_a_click(opened, runs):
    page = opened(runs["tokens"])
    table = page.locator("table.sortable").first
    column = [head.inner_text() for head in table.locator("th").all()].index("trace of Σ")
    rows = "[...document.querySelector('table.sortable').tBodies[0].rows]"
    cells = f"{rows}.map((row) => +row.cells[{column}].dataset.value)"
    wanted = sorted(np.trace(runs["tokens"]["covariance"].values, axis1=1, axis2=2))
    table.locator("th button").nth(column).click()
    assert page.evaluate(cells) == pytest.approx(wanted)
    table.locator("th button").nth(column).click()
    assert page.evaluate(cells) == pytest.approx(wanted[::-1])


def test_curves_tell_their_values(opened, runs):
    run = runs["tokens"]
    page = opened(run)
    canvas = page.locator(".chart canvas").first
    canvas.scroll_into_view_if_needed()
    x = page.evaluate("V.figures[0].to[0](1)")
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + x, box["y"] + 60)
    told = page.locator(".chart .tip").first.inner_text().replace("−", "-")
    for k, value in enumerate(run["mean"].values[1], 1):
        assert float(re.search(rf"mean of x_{k}: (\S+)", told).group(1)) == float(f"{value:.6g}")


@pytest.mark.parametrize("which", [1, 2, 3, "tokens"])
def test_a_phone_needs_no_horizontal_scroll(opened, runs, which):
    page = opened(runs[which], width=400)
    assert page.evaluate("document.documentElement.scrollWidth") <= 400


def test_dark_mode_is_dark_and_readable(opened, runs):
    page = opened(runs[2], color_scheme="dark")
    light = "getComputedStyle(document.body).{}.match(/\\d+/g).slice(0, 3).reduce((a, b) => a + +b, 0) / 3"
    paper, ink = (page.evaluate(light.format(name)) for name in ("backgroundColor", "color"))
    assert paper < 60
    assert ink > 180
    pen = "document.querySelector('.scene canvas').getContext('2d')"
    corner = page.evaluate(f"[...{pen}.getImageData(70, 30, 1, 1).data]")
    assert sum(corner[:3]) < 3 * 80  # empty cells have the colour of the paper


def test_hostile_texts_are_shown_and_nothing_runs(opened, runs):
    named = ["title", "case", "advice", "method", "citation", "created"]
    run = runs["tokens"].assign_attrs(dict.fromkeys(named, HOSTILE))
    run["mean_error"] = run["mean_error"].assign_attrs(long_name=HOSTILE)
    page = opened(run)
    assert page.locator("h1").inner_text() == HOSTILE
    assert page.title() == HOSTILE
    assert page.evaluate("window.hacked") is None
    assert page.locator("img").count() == 0


def test_a_notebook_shows_it_in_a_frame(opened, runs, browser, tmp_path):
    made = vl.report(runs["tokens"])
    file = tmp_path / "notebook.html"
    file.write_text(f"<!DOCTYPE html><p>before</p>{made._repr_html_()}", encoding="utf-8")
    page = browser.new_page()
    page.goto(file.as_uri())
    inside = page.frame_locator("iframe")
    inside.locator(".scene[data-time]").wait_for()
    assert inside.locator("h1").inner_text() == made.title
    page.close()


# Labels of ticks, as the page writes them


def labels(page, low, high, count, log=False):
    """Ticks of an axis, and their labels as numbers."""
    ticks = page.evaluate(f"V.ticks({low!r}, {high!r}, {count}, {str(log).lower()})")
    write = "V.logTick" if log else f"(value) => V.tick(value, {ticks})"
    texts = page.evaluate(f"{ticks}.map({write})")
    return ticks, [float(text.replace("−", "-")) for text in texts], texts


@pytest.mark.parametrize("log", [False, True])
def test_labels_of_an_axis_differ_and_say_where_their_ticks_stand(opened, runs, log):
    page = opened(runs["tokens"])
    rng = np.random.default_rng(0)
    for _ in range(60):
        low = float(10 ** rng.uniform(-9, 7)) * (1 if log else float(rng.choice([-1, 1])))
        high = float(abs(low) * 10 ** rng.uniform(0.1, 5)) + (0 if log else low)
        if not high > low:
            continue
        ticks, said, texts = labels(page, low, high, int(rng.integers(2, 7)), log)
        assert len(ticks) > 2, (low, high)
        assert len(set(texts)) == len(texts), texts
        step = (high - low) / 100
        np.testing.assert_allclose(said, ticks, rtol=1e-9, atol=0 if log else 1e-9 * step)


def test_numbers_at_the_box_are_those_of_their_places(opened, runs):
    page = opened(runs[3])
    page.evaluate("""() => {
        const scene = V.figures.at(-1).scenes[0], fill = CanvasRenderingContext2D.prototype.fillText;
        window.said = [];
        CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
            window.said.push([text, x, y]); return fill.apply(this, [text, x, y]);
        };
        scene.draw();
        CanvasRenderingContext2D.prototype.fillText = fill;
    }""")
    view = page.evaluate("V.figures.at(-1).scenes[0].view()")
    numbers = [one for one in page.evaluate("window.said") if re.fullmatch(r"−?[\d.]+", one[0])]
    assert len(numbers) >= 6
    corners = [[view[i][b >> i & 1] for i in range(3)] for b in range(8)]
    for text, x, y in numbers:
        value, away = float(text.replace("−", "-")), []
        for axis in range(3):
            for corner in corners:
                place = [*corner[:axis], value, *corner[axis + 1 :]]
                u, v = page.evaluate(f"V.figures.at(-1).scenes[0].camera.place({place}).slice(0, 2)")
                away.append(min(np.hypot(x - u, y - v - 15), np.hypot(x - u + 22, y - v)))
        assert min(away) < 1e-3, text


def test_a_surface_hides_the_scale_of_colours(opened, runs):
    page = opened(runs[3])
    scale, level = page.locator(".key:not(.level)"), page.locator(".key.level")
    assert not scale.is_visible()
    assert "surface at density" in level.inner_text()
    assert page.locator("label", has_text="log colours").is_hidden()
    page.locator("label", has_text="surface").locator("input").uncheck()
    assert scale.is_visible()
    assert not level.is_visible()
    assert page.locator("label", has_text="log colours").is_visible()


def test_what_stands_still_is_seen_inside_the_picture(opened):
    for points in ([[1.0, 2.0]], np.random.default_rng(0).normal(size=(20, 2)) * 0.01 + 1):
        problem = vl.Problem(vl.Softmax(A=-2 * np.eye(2)), vl.Particles(points), horizon=0.5)
        page = opened(vl.solve(problem, "particles", times=[0.0, 0.5]))
        places = page.evaluate("""() => {
            const s = V.figures.at(-1).scenes[0], f = s.camera.f, x = s.tokens.x[s.at.time];
            return Array.from({ length: s.tokens.count }, (_, i) => [(f.px(x[2 * i]) - f.left) / f.w,
                                                                     (f.py(x[2 * i + 1]) - f.top) / f.h]);
        }""")
        assert 0.02 < np.min(places) <= np.max(places) < 0.98


def test_curves_on_one_another_take_turns_and_the_theory_comes_last(opened):
    study = vl.mean_field_study(vl.load_case("interval-1d").problem, n=[8, 16, 32], replicas=3, p=(1, 1.0001))
    page = opened(study)
    names = page.locator(".chart .legend").first.locator("button").all_inner_texts()
    assert [name == "−0.5" for name in names] == [False] * (len(names) - 1) + [True]
    page.evaluate("window.all = V.figures[0].shown(); V.figures[0].share(all)")
    turns = page.evaluate("all.map((one) => one.turn ?? null)")
    assert turns[-1] is None
    assert sorted(turns[:2]) == [[0, 2], [1, 2]]  # p = 1 and p = 1.0001
