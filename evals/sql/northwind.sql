-- How many products are there?
SELECT count(*) FROM Products
-- How many products are in each category?
SELECT c.CategoryName, count(*) AS n FROM Categories c JOIN Products p ON p.CategoryID = c.CategoryID GROUP BY c.CategoryID ORDER BY n DESC, c.CategoryName
-- Which five products are the most expensive?
SELECT ProductName, UnitPrice FROM Products ORDER BY UnitPrice DESC LIMIT 5
-- Which products are not sold any more?
SELECT ProductName FROM Products WHERE Discontinued = '1' ORDER BY ProductName
-- How many orders were shipped to each country?
SELECT ShipCountry, count(*) AS n FROM Orders GROUP BY ShipCountry ORDER BY n DESC, ShipCountry
-- What is the total revenue after discounts?
SELECT round(sum(UnitPrice * Quantity * (1 - Discount)), 2) FROM "Order Details"
-- Which customers have never ordered?
SELECT c.CompanyName FROM Customers c LEFT JOIN Orders o ON o.CustomerID = c.CustomerID WHERE o.OrderID IS NULL ORDER BY c.CompanyName
-- Which employee handled the most orders?
SELECT e.FirstName || ' ' || e.LastName AS employee, count(*) AS n FROM Employees e JOIN Orders o ON o.EmployeeID = e.EmployeeID GROUP BY e.EmployeeID ORDER BY n DESC LIMIT 1
-- How many orders were there in each year?
SELECT strftime('%Y', OrderDate) AS year, count(*) FROM Orders GROUP BY year ORDER BY year
-- What is the average freight by shipper?
SELECT s.CompanyName, round(avg(o.Freight), 2) FROM Shippers s JOIN Orders o ON o.ShipVia = s.ShipperID GROUP BY s.ShipperID ORDER BY s.CompanyName
-- Which suppliers come from Germany?
SELECT CompanyName, City FROM Suppliers WHERE Country = 'Germany' ORDER BY CompanyName
-- Which products have to be ordered again?
SELECT ProductName, UnitsInStock, ReorderLevel FROM Products WHERE UnitsInStock + UnitsOnOrder < ReorderLevel ORDER BY ProductName
-- What are the ten best selling products by revenue?
SELECT p.ProductName, round(sum(d.UnitPrice * d.Quantity * (1 - d.Discount)), 2) AS revenue FROM "Order Details" d JOIN Products p ON p.ProductID = d.ProductID GROUP BY p.ProductID ORDER BY revenue DESC LIMIT 10
-- How many orders were shipped late?
SELECT count(*) FROM Orders WHERE ShippedDate > RequiredDate
-- How many orders are not shipped?
SELECT count(*) FROM Orders WHERE ShippedDate IS NULL OR ShippedDate = ''
-- Who reports to whom?
SELECT e.LastName, m.LastName FROM Employees e LEFT JOIN Employees m ON m.EmployeeID = e.ReportsTo ORDER BY e.EmployeeID
-- What is the revenue of each category?
SELECT c.CategoryName, round(sum(d.UnitPrice * d.Quantity * (1 - d.Discount)), 2) AS revenue FROM Categories c JOIN Products p ON p.CategoryID = c.CategoryID JOIN "Order Details" d ON d.ProductID = p.ProductID GROUP BY c.CategoryID ORDER BY revenue DESC
-- Which customers are in London?
SELECT CompanyName FROM Customers WHERE City = 'London' ORDER BY CompanyName
-- What is the most expensive product of each category?
SELECT c.CategoryName, p.ProductName, p.UnitPrice FROM Products p JOIN Categories c ON c.CategoryID = p.CategoryID WHERE p.UnitPrice = (SELECT max(q.UnitPrice) FROM Products q WHERE q.CategoryID = p.CategoryID) ORDER BY c.CategoryName, p.ProductName
-- How many customers are there in each country with more than five?
SELECT Country, count(*) AS n FROM Customers GROUP BY Country HAVING n > 5 ORDER BY n DESC, Country
-- What is the largest order by value?
SELECT OrderID, round(sum(UnitPrice * Quantity * (1 - Discount)), 2) AS value FROM "Order Details" GROUP BY OrderID ORDER BY value DESC LIMIT 1
-- How many territories does each region have?
SELECT trim(r.RegionDescription) AS region, count(*) FROM Regions r JOIN Territories t ON t.RegionID = r.RegionID GROUP BY r.RegionID ORDER BY region
-- How many territories does each employee look after?
SELECT e.LastName, count(*) AS n FROM Employees e JOIN EmployeeTerritories t ON t.EmployeeID = e.EmployeeID GROUP BY e.EmployeeID ORDER BY n DESC, e.LastName
-- Which products cost more than the average?
SELECT count(*) FROM Products WHERE UnitPrice > (SELECT avg(UnitPrice) FROM Products)
-- In which cities are there both customers and suppliers?
SELECT City FROM Customers INTERSECT SELECT City FROM Suppliers
-- Which employees were hired in 1993 or later?
SELECT FirstName, LastName FROM Employees WHERE HireDate >= '1993-01-01' ORDER BY LastName
-- What is the average number of days from order to shipping?
SELECT round(avg(julianday(ShippedDate) - julianday(OrderDate)), 1) FROM Orders WHERE ShippedDate IS NOT NULL
-- Which customer ordered the most different products?
SELECT c.CompanyName, count(DISTINCT d.ProductID) AS n FROM Customers c JOIN Orders o ON o.CustomerID = c.CustomerID JOIN "Order Details" d ON d.OrderID = o.OrderID GROUP BY c.CustomerID ORDER BY n DESC, c.CompanyName LIMIT 1
-- Which three employees made the most revenue in 1997?
WITH sales AS (SELECT o.EmployeeID, d.UnitPrice * d.Quantity * (1 - d.Discount) AS amount FROM Orders o JOIN "Order Details" d ON d.OrderID = o.OrderID WHERE strftime('%Y', o.OrderDate) = '1997') SELECT e.LastName, round(sum(s.amount), 2) AS revenue FROM sales s JOIN Employees e USING (EmployeeID) GROUP BY e.EmployeeID ORDER BY revenue DESC LIMIT 3
-- Which product names contain chocolate in German or English?
SELECT ProductName FROM Products WHERE ProductName LIKE '%schok%' OR ProductName LIKE '%choco%' ORDER BY ProductName
